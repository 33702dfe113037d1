// PredictionKey: what a prediction follows from, in 128 bits: the content of the model, the
// inputs with their shapes, and which outputs are asked for. Name, version and the order of
// the inputs do not count.
//
// The hash has a secret that is drawn when the program starts: no client can find two
// inputs with one key, and so have others answered with a wrong prediction.
//
// Threading: any thread.
#ifndef FOLIOT_ANSWER_CACHE_PREDICTION_KEY_H_
#define FOLIOT_ANSWER_CACHE_PREDICTION_KEY_H_

#include "answer/inference/query.h"
#include "foundation/base/hash.h"
#include "foundation/core/model_info.h"

namespace foliot {

using PredictionKey = Hash128;

// REQUIRES: model.content is known.
PredictionKey prediction_key(const HashSecret& secret, const ModelInfo& model, const Query& query);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_CACHE_PREDICTION_KEY_H_
