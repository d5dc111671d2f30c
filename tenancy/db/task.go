package db

// PublishingTask is the kind of task that stops or resumes an organization's publishing. The task's
// id is the organization's id.
const PublishingTask = "organization-publishing"

// InstanceName is how timelines name the instance when it stops or resumes an organization's
// publishing.
const InstanceName = "the instance"
