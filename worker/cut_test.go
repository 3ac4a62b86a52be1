package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// cutter breaks the next connection that sends a COMMIT, when it is armed: after the server carried it out, or before it got it.
type cutter struct {
	after, before atomic.Bool
	cuts          atomic.Int64
}

var errCut = errors.New("connection reset by test")

type cutConn struct {
	net.Conn
	c    *cutter
	dead atomic.Bool
}

// commitName is how pgx names the prepared COMMIT on the wire.
func commitName() []byte {
	sum := sha256.Sum256([]byte("COMMIT"))
	return []byte("stmtcache_" + hex.EncodeToString(sum[:24]))
}

// executes reports a Bind of the prepared COMMIT: message 'B' with an empty portal and this statement.
func executes(p []byte) bool {
	return bytes.Contains(p, append([]byte{0}, commitName()...)) && bytes.Contains(p, []byte("E\x00\x00\x00\x09"))
}

func (c *cutConn) Write(p []byte) (int, error) {
	if c.dead.Load() {
		return 0, errCut
	}
	if !executes(p) {
		return c.Conn.Write(p)
	}
	if c.c.before.CompareAndSwap(true, false) {
		c.c.cuts.Add(1)
		c.dead.Store(true)
		_ = c.Conn.Close()
		return 0, errCut
	}
	if !c.c.after.CompareAndSwap(true, false) {
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p)
	if err != nil {
		return n, err
	}
	// The server answers once it has committed; that answer never arrives.
	_ = c.Conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var got []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(got, []byte("COMMIT\x00")) {
		m, err := c.Conn.Read(buf)
		if err != nil {
			break
		}
		got = append(got, buf[:m]...)
	}
	c.c.cuts.Add(1)
	c.dead.Store(true)
	_ = c.Conn.Close()
	return n, nil
}

func (c *cutConn) Read(p []byte) (int, error) {
	if c.dead.Load() {
		return 0, errCut
	}
	return c.Conn.Read(p)
}

// newCutWorld is a world whose handlers' connections go through a cutter.
func newCutWorld(t *testing.T) (*world, *cutter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	dsn := pgtest.DSN(t)
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{}
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &cutConn{Conn: conn, c: c}, nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	plain, err := pgxpool.New(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plain.Close)
	w := worldOn(t, ctx, pool)
	return w, c
}
