// Work in the background: CPU and disk only where no other process wants them.
//
// Threading: of a process with one thread.
#ifndef FOLIOT_FOUNDATION_PROCESS_BACKGROUND_H_
#define FOLIOT_FOUNDATION_PROCESS_BACKGROUND_H_

namespace foliot {

// The calling process from now on, and those that it starts. What the system does not allow is left out.
void go_to_background();

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_BACKGROUND_H_
