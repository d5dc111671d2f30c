package db

// PublishingTask is the kind of the task that stops or resumes an organization's publishing. The
// task has the organization's id.
const PublishingTask = "organization-publishing"

// InstanceName is what timelines call the party that stopped an organization's publishing.
const InstanceName = "the instance"
