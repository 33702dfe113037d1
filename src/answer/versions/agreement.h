// agree(): whether two versions of a model answered a call alike, as far as a client would notice.
#ifndef FOLIOT_ANSWER_VERSIONS_AGREEMENT_H_
#define FOLIOT_ANSWER_VERSIONS_AGREEMENT_H_

#include "answer/inference/prediction.h"

namespace foliot {

// True: names, types and shapes are equal; of FP32 and FP64 each row has its largest value in the same place, or where
// a row is one value, both differ by at most 1 % of the larger one; all else is equal, byte for byte. Any thread.
bool agree(const Prediction& one, const Prediction& other);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_VERSIONS_AGREEMENT_H_
