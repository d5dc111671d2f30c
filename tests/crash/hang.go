package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"crier/tests/faultnet"
)

// hangFor is longer than the deadline of a call.
const hangFor = 8 * time.Second

// hang lets machines of a platform accept connections and never answer, while so many posts are due there that they
// would take all that a process may have in flight.
func (t *traffic) hang(ctx context.Context, s strike) error {
	machines := t.hanging[:machinesOf(s.Kind)]
	return t.watched(ctx, s.Kind, 700*time.Millisecond, hangFor, func(start time.Time) (all []booking) {
		for _, c := range t.stage[s.Kind] {
			all = append(all, t.plan(s.Kind, c, start.Add(100*time.Millisecond), "to a machine that hangs"))
		}
		return all
	}, func(start time.Time, aimed []booking) error {
		for _, g := range machines {
			g.Set(faultnet.Abandon)
		}
		pause(ctx, time.Until(start.Add(hangFor/4)))
		n, err := t.countWhere(ctx, aimed, "state in ('PUBLISHING', 'UNKNOWN')")
		if err == nil && n > 0 {
			err = t.hit(s.Kind)
		}
		pause(ctx, time.Until(start.Add(hangFor)))
		for _, g := range machines {
			g.Set(faultnet.Pass)
		}
		return err
	})
}

const manyDead = 50

// addDeadNodes adds the rows of dead processes to the cluster, at an address where nothing is ever answered, and
// takes them away after a while.
func (t *traffic) addDeadNodes(ctx context.Context) error {
	address, end, err := unanswered()
	if err != nil {
		return err
	}
	err = t.watched(ctx, deadNodes, time.Second, hangFor, func(time.Time) []booking { return nil }, func(start time.Time, _ []booking) error {
		add := fmt.Sprintf(`insert into node (id, home, address, roles, expires_at)
			select gen_random_uuid(), gen_random_uuid(), '%s', '{edge,worker}', now() - interval '1 minute' from generate_series(1, %d)`, address, manyDead)
		if err := errors.Join(t.exec(ctx, add), t.hit(deadNodes)); err != nil {
			return err
		}
		pause(ctx, time.Until(start.Add(time.Second+hangFor)))
		return t.exec(ctx, fmt.Sprintf("delete from node where address = '%s'", address))
	})
	return errors.Join(err, end())
}

// unanswered returns an address at which connections are neither made nor refused: nobody accepts there, and the
// queue of those who wait is full.
func unanswered() (address string, end func() error, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, err
	}
	open := []int{fd}
	end = func() (err error) {
		for _, fd := range open {
			err = errors.Join(err, syscall.Close(fd))
		}
		return err
	}
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		return "", nil, errors.Join(err, end())
	}
	name, err := syscall.Getsockname(fd)
	here, ok := name.(*syscall.SockaddrInet4)
	if err != nil || !ok {
		return "", nil, errors.Join(errors.New("the address of a socket is not known"), err, end())
	}
	for range 4 { // the kernel lets one or two more in than it was told
		c, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return "", nil, errors.Join(err, end())
		}
		open = append(open, c)
		if err := syscall.Connect(c, here); err != nil && !errors.Is(err, syscall.EINPROGRESS) {
			return "", nil, errors.Join(err, end())
		}
	}
	return fmt.Sprintf("127.0.0.1:%d", here.Port), end, nil
}
