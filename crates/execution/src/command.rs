//! The closed list of provider commands. A caller refuses anything else before it looks a provider up.

/// A command a provider may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProviderCommand {
    Capabilities,
    TransportStatus,
    OllamaApi,
}

/// The name is not on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Provider command is not supported")]
pub struct UnknownCommand;

impl ProviderCommand {
    pub const ALL: [ProviderCommand; 3] =
        [ProviderCommand::Capabilities, ProviderCommand::TransportStatus, ProviderCommand::OllamaApi];

    pub fn as_str(self) -> &'static str {
        match self {
            ProviderCommand::Capabilities => "capabilities",
            ProviderCommand::TransportStatus => "transport_status",
            ProviderCommand::OllamaApi => "ollama_api",
        }
    }

    /// The command of exactly this name.
    ///
    /// # Errors
    /// The name is not on the list.
    pub fn parse(name: &str) -> Result<ProviderCommand, UnknownCommand> {
        ProviderCommand::ALL.into_iter().find(|command| command.as_str() == name).ok_or(UnknownCommand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_closed() {
        for command in ProviderCommand::ALL {
            assert_eq!(ProviderCommand::parse(command.as_str()), Ok(command));
        }
        for name in ["", "Capabilities", "capabilities ", "shell", "ollama-api"] {
            assert_eq!(ProviderCommand::parse(name), Err(UnknownCommand), "{name:?}");
        }
    }
}
