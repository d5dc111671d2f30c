package record

import (
	"crier/tenancy"
)

// EmailSwitches holds a person's three email switches.
type EmailSwitches struct {
	Success bool `json:"sendSuccessEmails" doc:"Whether to send emails about published posts."`
	Failure bool `json:"sendFailureEmails" doc:"Whether to send emails about failed posts."`
	Streak  bool `json:"sendStreakEmails" doc:"Whether to send the weekly summary. Has no effect yet: the summary is not sent."`
}

// NewEmailSwitches returns the record of a person's email settings.
func NewEmailSwitches(n tenancy.Notifications) EmailSwitches {
	return EmailSwitches{Success: n.Success, Failure: n.Failure, Streak: n.Digest}
}
