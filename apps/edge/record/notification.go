package record

import (
	"crier/tenancy"
)

// EmailSwitches are the three switches of mails to a person.
type EmailSwitches struct {
	Success bool `json:"sendSuccessEmails" doc:"Mails about posts that were published."`
	Failure bool `json:"sendFailureEmails" doc:"Mails about posts that failed."`
	Streak  bool `json:"sendStreakEmails" doc:"The weekly summary. Stored for later: it is not sent yet."`
}

// NewEmailSwitches returns the record of the settings.
func NewEmailSwitches(n tenancy.Notifications) EmailSwitches {
	return EmailSwitches{Success: n.Success, Failure: n.Failure, Streak: n.Digest}
}
