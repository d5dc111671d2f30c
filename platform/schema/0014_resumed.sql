-- How long a post has been failing does not count the time before the last pause of its channel ended.
grant select (resumed_at) on channel_queue to crier_sender;
