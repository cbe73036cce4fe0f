// Handles stdin, stdout and stderr: closed streams, closed readers and full disks.
#pragma once

namespace dtrain {

// Call it at the start of the program.  Opens /dev/null for each of the three streams that is closed; otherwise the
// next file that a run opens would get its number and receive the log.  Ignores SIGXFSZ: a write beyond `ulimit -f`
// then fails with an error instead of ending the program.
void OpenStandardStreams();

// Ignores SIGPIPE, for a command whose results are files: it continues when the reader of its stdout or stderr has
// gone.  Other commands end by SIGPIPE (`dtrain list layers | head -1`).
void OutliveReaders();

// Call it at the end of the program.  Returns the exit code: `code`, or the code of a full disk if `code` is success
// but stdout could not be written.
int FinishStdout(int code);

}  // namespace dtrain
