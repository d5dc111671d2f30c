package db

// PublishingTask is the kind of task that stops or resumes an organization's publishing. The task's
// id is the organization's id.
const PublishingTask = "organization-publishing"

// InstanceName is the name shown in timelines when the instance stops or resumes an organization's
// publishing.
const InstanceName = "the instance"
