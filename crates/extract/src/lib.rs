//! From activations to jobs to models: all inference. Pure: records in, models out.
