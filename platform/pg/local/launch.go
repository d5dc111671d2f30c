package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"crier/platform/fault"
)

// guardScript runs the command in its arguments, which starts the server. It writes a line once the
// server accepts connections. It stops the server when its standard input ends, which happens when
// this process ends or is killed. It does not stop a server that was started later in the same
// folder.
const guardScript = `trap '' PIPE
"$@" || exit 1
exec 3>&-
pid=$(head -n 1 data/postmaster.pid)
echo
read -r _
[ "$(head -n 1 data/postmaster.pid)" = "$pid" ] && kill -INT "$pid"`

// launch starts the server on s.port and returns once it accepts connections. The server's
// processes inherit the processLock. After an error, no server process is running, and portTaken
// reports whether s.port was in use.
func (s *Server) launch(ctx context.Context, processes *os.File) (portTaken bool, err error) {
	// Postgres refuses to start if an old pid file contains the id of a running process, which may
	// belong to another program.
	for _, old := range []string{s.place.pidName(), s.place.join("server.log")} {
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fault.Wrap(fault.Unavailable, "local.Start",
				"The file "+old+" of an earlier run cannot be removed.", err)
		}
	}
	args := []string{
		s.bin.path("pg_ctl"), "start", "--silent", "--wait", "--timeout=86400",
		"--log=" + s.place.accountPath("server.log"), "--pgdata=" + s.place.accountPath("data"),
		"--options=" + s.options(),
	}
	if s.cfg.Detached {
		cmd := s.place.command(ctx, processes, args[0], args[1:]...)
		cmd.Env = append(cmd.Env, s.cfg.Env...)
		err = cmd.Run()
	} else {
		err = s.launchGuarded(ctx, processes, args)
	}
	if err != nil {
		why, portTaken := s.place.failureReason()
		if ctx.Err() != nil {
			why = "gave up waiting: " + why
			err = errors.Join(err, processes.Close(), s.end(context.WithoutCancel(ctx)))
		}
		return portTaken, fault.Wrap(fault.Unavailable, "local.Start",
			"Postgres in "+s.place.root+" did not start: "+why, err)
	}
	s.pid, _ = s.place.pidFile()
	return false, nil
}

// launchGuarded runs the start command args under guardScript and returns once the server accepts
// connections. If ctx ends first, it kills the script and the command. A server that was already
// starting can survive this; launch then stops it.
func (s *Server) launchGuarded(ctx context.Context, processes *os.File, args []string) error {
	guarded := append([]string{"-c", guardScript, "guard"}, args...)
	cmd := s.place.command(context.WithoutCancel(ctx), processes, "/bin/sh", guarded...)
	cmd.Env = append(cmd.Env, s.cfg.Env...)
	// Ctrl-C must not reach Postgres, because Postgres must be stopped only after its last client.
	cmd.SysProcAttr.Setsid = true
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	started, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	// A negative process id signals the whole process group.
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	if _, err := io.ReadFull(started, make([]byte, 1)); err != nil {
		return errors.Join(err, cmd.Wait())
	}
	s.guard = cmd
	return nil
}

// options returns the server's options, quoted for the shell that pg_ctl passes them to.
func (s *Server) options() string {
	settings := []string{
		"listen_addresses=" + loopback, "port=" + strconv.Itoa(s.port), "unix_socket_directories=",
		"timezone=UTC", "log_timezone=UTC", "logging_collector=off", "log_destination=stderr",
	}
	if !s.cfg.Durable {
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	if libs := s.bin.loadable(s.cfg.Preload); libs != "" {
		settings = append(settings, "shared_preload_libraries="+libs)
	}
	var out strings.Builder
	for _, v := range append(settings, s.cfg.Extra...) {
		out.WriteString(" -c '" + strings.ReplaceAll(v, "'", `'\''`) + "'")
	}
	return out.String()
}
