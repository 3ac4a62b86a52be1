// Package asyncapi has the documents of events/asyncapi read by the public parser
// of AsyncAPI (npm @asyncapi/parser), which checks them against the specification's
// schema and the schemas inside them. Behind the build tag clients, as package
// clients says; `make clients` runs it.
package asyncapi
