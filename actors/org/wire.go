package org

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// What travels between processes is the well-known protobuf types, since the library carries nothing else: Empty asks
// for admission, and is answered by an Admission as JSON bytes; a Timestamp says when something is due; cluster.Moved()
// says that the organization lives elsewhere by now.

func admit() any { return &emptypb.Empty{} }

func nudge(due time.Time) any { return timestamppb.New(due) }

func toWire(a Admission) (any, error) {
	raw, err := json.Marshal(a)
	return wrapperspb.Bytes(raw), err
}

// fromWire reads the answer to an admit, local or not.
func fromWire(answer any) (a Admission, ok bool) {
	switch v := answer.(type) {
	case Admission:
		return v, true
	case *wrapperspb.BytesValue:
		return a, json.Unmarshal(v.GetValue(), &a) == nil
	}
	return a, false
}
