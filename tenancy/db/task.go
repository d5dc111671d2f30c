package db

// PublishingTask is the kind of the task that stops or resumes the publishing of an organization,
// whose id is that of the task.
const PublishingTask = "organization-publishing"

// InstanceName is who stops the publishing of an organization, in timelines.
const InstanceName = "the instance"
