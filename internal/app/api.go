package app

import (
	"net/http"

	"github.com/vitrip/journeyman/events/webhook"
	"github.com/vitrip/journeyman/sagas"
)

// APIConfig is for [App.Handler]. Auth must be set.
type APIConfig struct {
	Auth sagas.Authenticator
	// Sandbox lets partners say how an operation ends; nothing is bought. Its database schemas must be its own, see [sagas.HTTPConfig].
	Sandbox bool
}

// Handler is the HTTP API for partners: operations, what they were told by webhook, and the addresses that suppliers call back.
func (a *App) Handler(cfg APIConfig) (http.Handler, error) {
	operations, err := a.sagas.Handler(sagas.HTTPConfig{Auth: cfg.Auth, Sandbox: cfg.Sandbox})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", operations)
	if a.hooks != nil { // what a partner was told, and how often it was tried
		mux.Handle("/v1/webhooks/", a.hooks.Handler(func(r *http.Request) (webhook.Caller, error) {
			p, err := cfg.Auth.Authenticate(r)
			return webhook.Caller{Tenant: p.Tenant, Name: p.Actor.ServiceClient}, err
		}))
	}
	if cfg.Sandbox { // suppliers know nothing of it
		return mux, nil
	}
	return mux, a.callbacks(mux)
}

// API is [App.Handler] with a static bearer token per partner: for demonstrations.
func (a *App) API(tokens map[string]sagas.Principal) (http.Handler, error) {
	auth, err := sagas.NewStaticTokens(tokens)
	if err != nil {
		return nil, err
	}
	return a.Handler(APIConfig{Auth: auth})
}
