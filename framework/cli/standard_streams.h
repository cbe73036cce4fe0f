// stdin, stdout and stderr as a command finds them, whoever has started it and however.
#pragma once

namespace dtrain {

// At the start of the program.  What is closed of the three is opened on /dev/null, or the next file of a run
// would get its number, and the log.  A file that grows beyond `ulimit -f` becomes an error of who writes
// it, instead of the end by SIGXFSZ.
void OpenStandardStreams();

// For a command whose results are files: it goes on when nobody reads its stdout or stderr any more, where
// others end by SIGPIPE (`dtrain list layers | head -1`).
void OutliveReaders();

// At the end.  The exit code: `code`, or that of a full disk where all went well but stdout could not be
// written.
int FinishStdout(int code);

}  // namespace dtrain
