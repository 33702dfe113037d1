// monotonic_now(): the real clock, and the only place in Foliot that reads one. All
// other code receives its time (foundation/base/time.h).
#ifndef FOLIOT_FOUNDATION_PLATFORM_CLOCK_H_
#define FOLIOT_FOUNDATION_PLATFORM_CLOCK_H_

#include "foundation/base/time.h"

namespace foliot {

// CLOCK_MONOTONIC: never goes back, is the same for all threads and processes of
// this machine, and keeps still while the machine sleeps.
//
// Threading: any thread. Makes no system call where the kernel offers a vDSO.
TimePoint monotonic_now();

// How long the calling thread has run so far. Makes a system call.
Duration thread_processor_time();

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_CLOCK_H_
