package store

import (
	"testing"

	"crier/tests/sqltest"
)

func TestPlan_NarrowPoliciesChangeNoPlan(t *testing.T) {
	t.Parallel()
	sqltest.KeepsPlans(t, map[string]string{
		"PostInsert": insertPosts, "PartInsert": partInsert, "EventsWritten": eventsWritten, "ChannelsHold": channelsHold,
		"GroupLock": groupLock, "GroupStatus": groupStatus, "PostMove": movePosts, "MonthPosts": monthPosts,
		"ChannelsByID": channelsByID, "RootsInRange": rootsInRange, "RootsPage": rootsPage, "RootsCount": rootsCount,
		"RootByID": rootByID, "SeriesInRange": findSeriesInRange, "SeriesNamed": findSeriesByID, "PartsOf": partsOf,
		"AttachmentsOf": attachmentsOf, "FollowersOf": followersOf, "ChannelsOf": channelsOf, "EventsOf": eventsOf,
		"ChannelTaken": channelTaken, "AllTaken": allTaken, "ContentOf": contentOf, "ContentApprove": contentApprove,
	})
}
