//===- Tfm.td - Operations of the tfm dialect -----------------------------===//

#ifndef FSDPQ_TFM_TD
#define FSDPQ_TFM_TD

include "dialects/Tfm/TfmStructure.td"
include "dialects/Tfm/TfmCompute.td"
include "dialects/Tfm/TfmGradients.td"
include "dialects/Tfm/TfmTraining.td"

#endif // FSDPQ_TFM_TD
