#pragma once

/// Training jobs. In a PyTorch-style loop one line changes, `optimizer.step()` becomes `shared.step(loss)`, and five
/// around it come: share, batches, evaluate, next and run.
#include "paceline/checkpoint.h"
#include "paceline/data.h"
#include "paceline/run.h"
#include "paceline/tensor.h"
#include "paceline/trainer.h"
#include "paceline/worker.h"
