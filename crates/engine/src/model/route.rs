//! Which models may serve a request, and in which order. Deterministic: the same manifests and request give the same
//! list, and nothing is remembered between executions.

use sealog_events::{PortableCode, Target};
use sealog_execution::{ExecutionRequest, Failure, ModelManifest, ProviderManifest};

/// Every target that can serve the request: providers named in `provider_order` first and in that order, the rest
/// behind them in registration order, each provider's models in manifest order. None at all is [`unavailable`].
pub(crate) fn candidates(request: &ExecutionRequest, manifests: &[ProviderManifest]) -> Vec<Target> {
    let order = &request.routing.provider_order;
    let rank = |manifest: &ProviderManifest| {
        order.iter().position(|name| *name == manifest.provider).unwrap_or(order.len())
    };
    let mut ranked: Vec<&ProviderManifest> = manifests.iter().collect();
    // Stable, so equal ranks keep the registration order.
    ranked.sort_by_key(|manifest| rank(manifest));
    let capable = |manifest: &&ProviderManifest| {
        let provider = manifest.provider.clone();
        let models = manifest.models.iter().filter(|model| supports(request, model));
        let targets = models.map(|model| Target { provider: provider.clone(), model: model.model.clone() });
        targets.filter(|target| request.only.as_ref().is_none_or(|only| only == target)).collect::<Vec<_>>()
    };
    let named = |target: &Target| request.only.as_ref().is_none_or(|only| only == target);
    ranked.iter().flat_map(capable).filter(named).collect()
}

/// Whether the manifest still declares what was decided on.
///
/// # Errors
/// `capability_unavailable` if it does not.
pub(crate) fn recheck(
    request: &ExecutionRequest,
    model: &str,
    manifest: &ProviderManifest,
) -> Result<(), Failure> {
    let declared =
        manifest.models.iter().any(|declared| declared.model == model && supports(request, declared));
    if declared { Ok(()) } else { Err(unavailable()) }
}

/// Whether one model can serve the request. The modalities of the input parts count whether or not the request
/// requires them: leaving requirements out never widens the choice.
fn supports(request: &ExecutionRequest, model: &ModelManifest) -> bool {
    let required = &request.requirements;
    let booleans = [
        (required.stream, model.stream),
        (required.tools, model.tools),
        (required.structured_output, model.structured_output),
        (required.asynchronous, model.asynchronous),
        (required.cancel, model.cancel),
    ];
    model.abilities.contains(&request.ability)
        && request.input.iter().all(|part| model.input_modalities.contains(&part.modality()))
        && required.input_modalities.iter().all(|modality| model.input_modalities.contains(modality))
        && required.output_modalities.iter().all(|modality| model.output_modalities.contains(modality))
        && booleans.iter().all(|(required, declared)| !required || *declared)
}

/// No model can serve the request.
pub(crate) fn unavailable() -> Failure {
    Failure::permanent(PortableCode::CapabilityUnavailable, "No provider has the requested capabilities")
}

#[cfg(test)]
mod tests;
