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
    if declared { Ok(()) } else { Err(unavailable(request, std::slice::from_ref(manifest))) }
}

/// One thing that a request may ask of a model, and what is said when no model has it.
struct Capability {
    has: fn(&ExecutionRequest, &ModelManifest) -> bool,
    lacking: &'static str,
}

const ABILITY: Capability = Capability {
    has: |request, model| model.abilities.contains(&request.ability),
    lacking: "No provider has the requested ability",
};

/// Beside the ability. The modalities of the input parts count whether or not the request requires them: leaving
/// requirements out never widens the choice.
const FURTHER: [Capability; 7] = [
    Capability {
        has: |request, model| {
            let required = &request.requirements.input_modalities;
            let parts = request.input.iter().map(|part| part.modality());
            parts.chain(required.iter().copied()).all(|modality| model.input_modalities.contains(&modality))
        },
        lacking: "No provider with the requested ability takes this kind of input",
    },
    Capability {
        has: |request, model| {
            let mut required = request.requirements.output_modalities.iter();
            required.all(|modality| model.output_modalities.contains(modality))
        },
        lacking: "No provider with the requested ability gives this kind of output",
    },
    Capability {
        has: |request, model| !request.requirements.tools || model.tools,
        lacking: "No provider with the requested ability takes tools",
    },
    Capability {
        has: |request, model| !request.requirements.stream || model.stream,
        lacking: "No provider with the requested ability streams",
    },
    Capability {
        has: |request, model| !request.requirements.structured_output || model.structured_output,
        lacking: "No provider with the requested ability has structured output",
    },
    Capability {
        has: |request, model| !request.requirements.asynchronous || model.asynchronous,
        lacking: "No provider with the requested ability is asynchronous",
    },
    Capability {
        has: |request, model| !request.requirements.cancel || model.cancel,
        lacking: "No provider with the requested ability can be cancelled",
    },
];

/// Whether one model can serve the request.
fn supports(request: &ExecutionRequest, model: &ModelManifest) -> bool {
    (ABILITY.has)(request, model) && FURTHER.iter().all(|capability| (capability.has)(request, model))
}

/// No model can serve the request. Says what none of them has, without repeating what was asked for.
pub(crate) fn unavailable(request: &ExecutionRequest, manifests: &[ProviderManifest]) -> Failure {
    let able = |provider: &ProviderManifest, model: &ModelManifest| {
        let named = |only: &Target| only.provider == provider.provider && only.model == model.model;
        (ABILITY.has)(request, model) && request.only.as_ref().is_none_or(named)
    };
    let models = manifests.iter().flat_map(|provider| {
        provider.models.iter().filter(move |model| able(provider, model)).collect::<Vec<_>>()
    });
    let models: Vec<&ModelManifest> = models.collect();
    let none_has = |capability: &&Capability| !models.iter().any(|model| (capability.has)(request, model));
    let lacking = match (models.is_empty(), FURTHER.iter().find(none_has)) {
        (true, _) => ABILITY.lacking,
        (false, Some(capability)) => capability.lacking,
        (false, None) => "No provider has all of the requested capabilities",
    };
    Failure::permanent(PortableCode::CapabilityUnavailable, lacking)
}

#[cfg(test)]
mod tests;
