// Package jwtauth authenticates partners by OAuth 2 access tokens that are JWTs (RFC 9068), signed by an issuer whose
// keys are fetched from it. The tenant comes from the token and from nowhere else.
package jwtauth
