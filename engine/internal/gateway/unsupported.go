package gateway

import (
	"context"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func unsupported(rpc string) error {
	return status.Errorf(codes.Unimplemented, "%s is not supported by the embedded engine; engine/LIMITS.md lists what is", rpc)
}

// EvaluateDecision implements pb.GatewayServer: always UNIMPLEMENTED.
func (s *Server) EvaluateDecision(context.Context, *pb.EvaluateDecisionRequest) (*pb.EvaluateDecisionResponse, error) {
	return nil, unsupported("EvaluateDecision")
}
