// What gRPC and Protobuf print by themselves about what a peer sent: lines without a limit, with the peer's bytes as
// they are, which may forge others.
#ifndef FOLIOT_APP_SILENT_LIBRARIES_H_
#define FOLIOT_APP_SILENT_LIBRARIES_H_

namespace foliot {

// They print nothing from now on, unless GRPC_VERBOSITY is set: then gRPC prints what it says. What fails is an error
// of the call or the message anyway. REQUIRES: there are no threads yet.
void silence_libraries();

}  // namespace foliot

#endif  // FOLIOT_APP_SILENT_LIBRARIES_H_
