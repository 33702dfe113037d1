// class_accuracy(): the share of rows of a classifier's answers that name the class of their label.
#ifndef FOLIOT_EDGE_JOBS_CLASS_ACCURACY_H_
#define FOLIOT_EDGE_JOBS_CLASS_ACCURACY_H_

#include "edge/jobs/input_file.h"
#include "foundation/base/status.h"

namespace foliot {

// The class of a row is the place of its largest element, or the row itself, if it is one whole number. `labels`:
// INT64, one for each row. Errors: kInvalidArgument naming what does not fit.
Result<double> class_accuracy(const InputFile& answers, const InputFile& labels);

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_CLASS_ACCURACY_H_
