// Package clients runs official clients of Camunda 8 unmodified against the
// embedded engine: the npm packages @camunda8/sdk (gRPC and REST), zeebe-node and
// @camunda8/orchestration-cluster-api with its strict validation, and the Java
// client of two versions (gRPC and REST). It also compares the package bpmn with
// the validators of Zeebe's own model library.
//
// The tests stand behind the build tag clients: they need Node.js 20.12 with npm,
// JDK 17 and Maven, and install pinned packages into the folder
// ${JOURNEYMAN_CACHE:-/var/tmp/journeyman-cache}, once. `make clients` runs them.
package clients
