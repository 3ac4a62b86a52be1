package zeebe

import (
	"context"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

// StreamWindow bounds, in bytes, what a gateway can push into one job stream that nobody reads: the stream's flow-control window.
// The gateway's own side may hold as much again. It does not grow (path rule 27).
const StreamWindow = 64 << 10

// JobStream gives jobs of one type as the gateway pushes them. Recv may be called from one goroutine at a time.
type JobStream struct {
	stream pb.Gateway_StreamActivatedJobsClient
	conn   *Conn
}

// StreamJobs opens a stream of jobs that become activatable from now on; a backlog must be polled. It ends with ctx. The job
// time-out of req.Timeout runs from the push, not from Recv. MaxJobs and Wait are not used. A gateway without streams shows
// at Recv: UNIMPLEMENTED. Streams of a [Conn] share a connection of their own with a fixed window, so a stream that nobody
// reads holds up no other call; its keep-alive finds a peer that went silent within KeepAlive + KeepAliveTimeout.
func (c *Conn) StreamJobs(ctx context.Context, req ActivateRequest) (*JobStream, error) {
	s, err := c.streams.StreamActivatedJobs(ctx, &pb.StreamActivatedJobsRequest{
		Type: req.Type, Worker: req.Worker, Timeout: req.Timeout.Milliseconds(), FetchVariable: req.Variables, TenantIds: req.Tenants,
	})
	if err != nil {
		return nil, wrap("StreamActivatedJobs", err)
	}
	return &JobStream{stream: s, conn: c}, nil
}

// Recv waits for the next job. After the context of the stream was cancelled it still gives the jobs that had arrived, then
// CANCELED: they are ours and must be used or handed back. The end of the stream is io.EOF inside an [Error].
func (s *JobStream) Recv() (Job, error) {
	j, err := s.stream.Recv()
	if err != nil {
		return Job{}, wrap("StreamActivatedJobs", err)
	}
	return jobOf(j), nil
}

// Ended waits, after Recv gave CANCELED, until the gateway has seen the end of the stream: what is made activatable from then on is not
// pushed into it any more. Other calls travel on another connection and could arrive before. An error says that this is not known.
func (s *JobStream) Ended(ctx context.Context) error {
	ctx, cancel := s.conn.bounded(ctx)
	defer cancel()
	_, err := s.conn.streams.Topology(ctx, &pb.TopologyRequest{}) // behind the end on the same connection, which keeps order
	return wrap("Topology", err)
}
