#pragma once

// The parts of libtorch that this layer uses: tensors and their factories, custom autograd
// functions, and the guards of gradient recording. Include this instead of <torch/torch.h>, which
// takes much longer to compile. Optimisers and functions of torch::nn are included where they are
// used.

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/utils.h>
