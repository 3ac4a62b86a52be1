package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/operator/console"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// consoleAddress is where the console listens: loopback, for nobody signs in to it.
const consoleAddress = "127.0.0.1:0"

// serveConsole serves the operator's console on loopback until the stage closes.
func (s *stage) serveConsole(cluster string, log zerolog.Logger) error {
	if err := console.CheckListen(consoleAddress); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	reader, err := rest.New(rest.Config{Base: s.rest, HTTP: client})
	if err != nil {
		return err
	}
	desk, err := operator.New(operator.Config{Pool: s.pool, Cluster: cluster, Engine: reader, Log: log})
	if err != nil {
		return err
	}
	handler, err := console.New(console.Config{Desk: desk, Actor: "console@demo", Log: log})
	if err != nil {
		return err
	}
	lis, err := net.Listen("tcp", consoleAddress)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
			log.Error().Err(err).Msg("console stopped serving")
		}
	}()
	s.console = fmt.Sprintf("console  http://%s   (open: nobody signs in, this machine only; cluster %s)\n", lis.Addr(), cluster)
	s.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := server.Shutdown(ctx)
		<-done
		client.CloseIdleConnections()
		return err
	})
	return nil
}
