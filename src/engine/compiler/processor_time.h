// ProcessorTime: a stopwatch of the processor time that this process takes. Unlike the time
// that passes, it does not depend on what else the machine is doing.
#ifndef FOLIOT_ENGINE_COMPILER_PROCESSOR_TIME_H_
#define FOLIOT_ENGINE_COMPILER_PROCESSOR_TIME_H_

#include <ctime>

#include "foundation/base/time.h"

namespace foliot {

// As `clock` of clock_gettime() shows it. Measuring is all that the compiler needs clocks
// for; it runs in no loop that could hand one in.
Duration read_clock(clockid_t clock);

// Threading: one thread, whose work is measured; others may do part of it.
class ProcessorTime {
 public:
  // Since this was made. The clock of the process counts all threads, but where the process
  // has a limit of processor time the kernel sets it forward at its ticks only, every few
  // milliseconds; that of the thread is exact.
  Duration elapsed() const;

 private:
  Duration process_ = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  Duration thread_ = read_clock(CLOCK_THREAD_CPUTIME_ID);
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_PROCESSOR_TIME_H_
