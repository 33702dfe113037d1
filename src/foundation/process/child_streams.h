// ChildStreams: the connections of a process with its child: what the child reads, and
// pipes for what it writes.
//
// Threading: none.
#ifndef FOLIOT_FOUNDATION_PROCESS_CHILD_STREAMS_H_
#define FOLIOT_FOUNDATION_PROCESS_CHILD_STREAMS_H_

#include <string>

#include "foundation/base/status.h"
#include "foundation/platform/descriptor.h"

namespace foliot {

// Where a child finds the file that it may write, after the standard three.
inline constexpr int kChildOutputFile = 3;

struct Pipe {
  Descriptor from;  // does not block
  Descriptor to;
};

struct ChildStreams {
  Descriptor input;  // a file without a name, at its beginning
  Pipe said;         // standard output
  Pipe complained;   // standard error
};
// Errors: kResourceExhausted.
Result<ChildStreams> make_child_streams(const std::string& input);

// Two ends of a connection that keeps messages apart.
struct SocketPair {
  Descriptor ours;
  Descriptor theirs;
};
Result<SocketPair> make_socket_pair();

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_CHILD_STREAMS_H_
