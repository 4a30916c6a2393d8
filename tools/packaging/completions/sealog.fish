# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_sealog_global_optspecs
    string join \n json h/help V/version
end

function __fish_sealog_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_sealog_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_sealog_using_subcommand
    set -l cmd (__fish_sealog_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c sealog -n "__fish_sealog_needs_command" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_needs_command" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_needs_command" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "serve" -d 'Run a node: accept executions over HTTP and journal them'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "run" -d 'Submit one text, print the answer as it streams, exit with the outcome'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "ps" -d 'List executions, the youngest first'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "show" -d 'Show what is known of one execution'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "tail" -d 'Print one execution\'s events, and follow it'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "cancel" -d 'Ask an execution to stop'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "demo" -d 'See the whole promise in a few seconds: stream, kill -9, restart, replay'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "doctor" -d 'See whether directory, disk and clock are fit for a journal'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "config" -d 'Check a configuration, and see what a node would run with'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "token" -d 'Make the bearer tokens that a node asks for'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "journal" -d 'Everything about a journal on disk: check, replay, back up, restore, repair, export, compact, change keys'
complete -c sealog -n "__fish_sealog_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l data-dir -d 'The journal\'s directory [default: $XDG_STATE_HOME/sealog, else ~/.local/state/sealog]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l listen -d 'Address to listen on; port 0 picks a free one. `unix:PATH`: a socket that only this user may connect to' -r
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l config -d 'Providers and limits (TOML)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l log-format -d 'How log lines look on standard error, with json notes and errors too [default: text, with --json json]' -r -f -a "text\t''
json\t'One JSON object a line'"
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l grace-ms -d 'How long a stop may take until what is still open is dropped' -r
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l store-id -d 'The store id that the journal must have; one that is not there is never created (exit code 10)' -r
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l token-file -d 'Require a bearer token of this file, which `sealog token new` writes; read again on SIGHUP' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l tls-cert -d 'Speak TLS with this certificate chain (PEM, the node\'s own first); read again on SIGHUP' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l tls-key -d 'Its private key (PEM); a file that others cannot read' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l allow-host -d 'One more name or address that requests may be sent to, beside the loopback ones' -r
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l allow-origin -d 'One more origin whose pages may send requests, beside the node\'s own' -r
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l allow-remote -d 'Listen beyond this machine without tokens and TLS: put a proxy in front that has both'
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l read-only -d 'Serve a stopped journal or a backup as it is: no lock, no byte changed, works on read-only media; writes get 503'
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l no-create -d 'Refuse (exit code 10) instead of creating a journal in an absent or empty directory'
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand serve" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sealog -n "__fish_sealog_using_subcommand serve" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand run" -l url -d 'The node to ask: https://HOST:PORT, http://HOST:PORT or unix:PATH [default: http://127.0.0.1:4320]' -r
complete -c sealog -n "__fish_sealog_using_subcommand run" -l ca-file -d 'The certificates of a private CA, PEM: over https whoever they signed is trusted, and nobody else [default: the system\'s roots]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand run" -l token-file -d 'A file that holds a token of the node, 0600 [default: the file that SEALOG_TOKEN_FILE names, if any]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand run" -l data-dir -d 'Run in this process on the journal in DIR instead of asking a node. Only then the flags about journals and keys below are taken' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand run" -l config -d 'Providers and limits (TOML); only with --data-dir' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand run" -l idempotency-key -d 'The same key and request return the same execution' -r
complete -c sealog -n "__fish_sealog_using_subcommand run" -l ability -d 'What the model must be able to do; `GET /v1/providers` lists what the node\'s models can' -r
complete -c sealog -n "__fish_sealog_using_subcommand run" -l provider -d 'Ask this provider before others that can do it; several are asked in the order given' -r
complete -c sealog -n "__fish_sealog_using_subcommand run" -l extensions -d 'The request\'s `extensions`, a JSON object' -r
complete -c sealog -n "__fish_sealog_using_subcommand run" -l store-id -d 'The store id that the journal must have; one that is not there is never created (exit code 10)' -r
complete -c sealog -n "__fish_sealog_using_subcommand run" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand run" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand run" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand run" -l allow-fallback -d 'Ask the next provider when one fails in a way that may be retried, before any output'
complete -c sealog -n "__fish_sealog_using_subcommand run" -l no-create -d 'Refuse (exit code 10) instead of creating a journal in an absent or empty directory'
complete -c sealog -n "__fish_sealog_using_subcommand run" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand run" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand run" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand run" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand run" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l status -d 'Only executions of this status' -r -f -a "accepted\t''
routing\t''
running\t''
succeeded\t''
failed\t''
cancelled\t''"
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l ability -d 'Only executions that were submitted for this ability' -r
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l limit -d 'Most executions that are listed' -r
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l after -d 'Goes on behind a list: the place that it printed at its end' -r
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l url -d 'The node to ask: https://HOST:PORT, http://HOST:PORT or unix:PATH [default: http://127.0.0.1:4320]' -r
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l ca-file -d 'The certificates of a private CA, PEM: over https whoever they signed is trusted, and nobody else [default: the system\'s roots]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l token-file -d 'A file that holds a token of the node, 0600 [default: the file that SEALOG_TOKEN_FILE names, if any]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l data-dir -d 'Read the journal in DIR, or a backup, instead of asking a node. Only then the flags about journals and keys below are taken' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand ps" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand ps" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand ps" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand show" -l url -d 'The node to ask: https://HOST:PORT, http://HOST:PORT or unix:PATH [default: http://127.0.0.1:4320]' -r
complete -c sealog -n "__fish_sealog_using_subcommand show" -l ca-file -d 'The certificates of a private CA, PEM: over https whoever they signed is trusted, and nobody else [default: the system\'s roots]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand show" -l token-file -d 'A file that holds a token of the node, 0600 [default: the file that SEALOG_TOKEN_FILE names, if any]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand show" -l data-dir -d 'Read the journal in DIR, or a backup, instead of asking a node. Only then the flags about journals and keys below are taken' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand show" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand show" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand show" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand show" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand show" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand show" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand show" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand show" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand tail" -l after -d 'Only events behind this sequence' -r
complete -c sealog -n "__fish_sealog_using_subcommand tail" -l url -d 'The node to ask: https://HOST:PORT, http://HOST:PORT or unix:PATH [default: http://127.0.0.1:4320]' -r
complete -c sealog -n "__fish_sealog_using_subcommand tail" -l ca-file -d 'The certificates of a private CA, PEM: over https whoever they signed is trusted, and nobody else [default: the system\'s roots]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand tail" -l token-file -d 'A file that holds a token of the node, 0600 [default: the file that SEALOG_TOKEN_FILE names, if any]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand tail" -l data-dir -d 'Read the journal in DIR, or a backup, instead of asking a node. Only then the flags about journals and keys below are taken' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand tail" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand tail" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand tail" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand tail" -s f -l follow -d 'Go on to the end, across lost connections and restarts of the node'
complete -c sealog -n "__fish_sealog_using_subcommand tail" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand tail" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand tail" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand tail" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand tail" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand cancel" -l url -d 'The node to ask: https://HOST:PORT, http://HOST:PORT or unix:PATH [default: http://127.0.0.1:4320]' -r
complete -c sealog -n "__fish_sealog_using_subcommand cancel" -l ca-file -d 'The certificates of a private CA, PEM: over https whoever they signed is trusted, and nobody else [default: the system\'s roots]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand cancel" -l token-file -d 'A file that holds a token of the node, 0600 [default: the file that SEALOG_TOKEN_FILE names, if any]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand cancel" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand cancel" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand cancel" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand demo" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand demo" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand demo" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand doctor" -l data-dir -d 'The directory [default: $XDG_STATE_HOME/sealog, else ~/.local/state/sealog]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand doctor" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand doctor" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand doctor" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand config; and not __fish_seen_subcommand_from check show help" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand config; and not __fish_seen_subcommand_from check show help" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand config; and not __fish_seen_subcommand_from check show help" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand config; and not __fish_seen_subcommand_from check show help" -f -a "check" -d 'Say whether a node would take a configuration file'
complete -c sealog -n "__fish_sealog_using_subcommand config; and not __fish_seen_subcommand_from check show help" -f -a "show" -d 'Show what a node would run with'
complete -c sealog -n "__fish_sealog_using_subcommand config; and not __fish_seen_subcommand_from check show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from check" -l config -d 'The same, as `serve` takes it' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from check" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from check" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l data-dir -d 'The journal\'s directory [default: $XDG_STATE_HOME/sealog, else ~/.local/state/sealog]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l listen -d 'Address to listen on; port 0 picks a free one. `unix:PATH`: a socket that only this user may connect to' -r
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l config -d 'Providers and limits (TOML)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l log-format -d 'How log lines look on standard error, with json notes and errors too [default: text, with --json json]' -r -f -a "text\t''
json\t'One JSON object a line'"
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l grace-ms -d 'How long a stop may take until what is still open is dropped' -r
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l store-id -d 'The store id that the journal must have; one that is not there is never created (exit code 10)' -r
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l token-file -d 'Require a bearer token of this file, which `sealog token new` writes; read again on SIGHUP' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l tls-cert -d 'Speak TLS with this certificate chain (PEM, the node\'s own first); read again on SIGHUP' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l tls-key -d 'Its private key (PEM); a file that others cannot read' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l allow-host -d 'One more name or address that requests may be sent to, beside the loopback ones' -r
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l allow-origin -d 'One more origin whose pages may send requests, beside the node\'s own' -r
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l origin -d 'Say of each value where it comes from: default, file and line, environment, or flag'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l allow-remote -d 'Listen beyond this machine without tokens and TLS: put a proxy in front that has both'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l read-only -d 'Serve a stopped journal or a backup as it is: no lock, no byte changed, works on read-only media; writes get 503'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l no-create -d 'Refuse (exit code 10) instead of creating a journal in an absent or empty directory'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "check" -d 'Say whether a node would take a configuration file'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show what a node would run with'
complete -c sealog -n "__fish_sealog_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sealog -n "__fish_sealog_using_subcommand token; and not __fish_seen_subcommand_from new help" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand token; and not __fish_seen_subcommand_from new help" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand token; and not __fish_seen_subcommand_from new help" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand token; and not __fish_seen_subcommand_from new help" -f -a "new" -d 'Make a bearer token, print it once, and add its digest to a token file'
complete -c sealog -n "__fish_sealog_using_subcommand token; and not __fish_seen_subcommand_from new help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sealog -n "__fish_sealog_using_subcommand token; and __fish_seen_subcommand_from new" -l scope -d 'What the token is good for: read (executions and results), write (also submit and cancel), admin (metrics). May be given more than once' -r -f -a "read\t''
write\t''
admin\t''"
complete -c sealog -n "__fish_sealog_using_subcommand token; and __fish_seen_subcommand_from new" -l file -d 'The token file that serve reads; made (0600) if it does not exist' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand token; and __fish_seen_subcommand_from new" -l name -d 'What the line in the file is called: letters, digits, `-`, `_` and `.`' -r
complete -c sealog -n "__fish_sealog_using_subcommand token; and __fish_seen_subcommand_from new" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand token; and __fish_seen_subcommand_from new" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand token; and __fish_seen_subcommand_from new" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "new" -d 'Make a bearer token, print it once, and add its digest to a token file'
complete -c sealog -n "__fish_sealog_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "init" -d 'Create a journal'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "inspect" -d 'Summarise a journal: keys, segments, executions'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "verify" -d 'Check every byte, tag, link and result'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "replay" -d 'Print one execution\'s events, offline'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "export" -d 'Write every execution as JSON lines'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "import" -d 'Make a new journal from an export'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "rekey" -d 'Change who can open the journal, and its keys'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "backup" -d 'Copy a journal, also beside its running node; again into the same place copies what is new'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "repair" -d 'Make a sound journal out of a damaged one, elsewhere, and list every loss'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "restore" -d 'Make a journal of a backup, in a new lineage and fenced'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "unfence" -d 'Lift the fence of a restored, repaired or imported journal, once the original is gone for good'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "compact" -d 'Fold finished executions and drop what was forgotten, while no node runs'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and not __fish_seen_subcommand_from init inspect verify replay export import rekey backup repair restore unfence compact help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from init" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from init" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from init" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from init" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from init" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from init" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from init" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l execution -d 'Show where the events of one execution stand' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l executions -d 'List every execution with its id and status'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l segments -d 'List every segment, however many there are'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l frames -d 'List every frame'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l keys -d 'List root keys and what names them'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l head -d 'Print the journal\'s anchor and nothing else: keep it elsewhere, and ask `verify --anchor` later'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from inspect" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from verify" -l anchor -d 'An anchor that `inspect --head` printed, or a file that holds one: says whether the journal still contains it' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from verify" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from verify" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from verify" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from verify" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from verify" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from verify" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from verify" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from replay" -l format -d 'How to print the events [default: sse, with --json jsonl]' -r -f -a "sse\t'The bytes of the live stream, without heartbeats'
jsonl\t'One event\'s JSON text per line'
text\t'The text that was put out'
snapshot\t'The state after the last event, as `GET /v1/executions/{id}` answers'"
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from replay" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from replay" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from replay" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from replay" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from replay" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from replay" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from replay" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from export" -l execution -d 'This execution alone' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from export" -l output -d 'A new file (0600) [default: standard output]' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from export" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from export" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from export" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from export" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from export" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from export" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from export" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from import" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from import" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from import" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from import" -l skip-incomplete -d 'Leave out executions of which the export of a damaged journal lacks something'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from import" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from import" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from import" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from import" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -a "list" -d 'List slots and root keys, and what names each root key'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -a "add-slot" -d 'Let one more key file or passphrase open the journal'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -a "remove-slot" -d 'Take a slot away; another one must stay'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -a "rotate" -d 'New keys for everything that is written from now on'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -a "export-keyring" -d 'Write the keyring to a file, for the day when both copies are lost'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -a "import-keyring" -d 'Put an exported keyring back'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from rekey" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from backup" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from backup" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from backup" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from backup" -l no-create -d 'Refuse (exit code 10) where DEST is no backup yet, as the place of a volume that is not mounted is none'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from backup" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from backup" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from backup" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from backup" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from backup" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from repair" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from repair" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from repair" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from repair" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from repair" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from repair" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from repair" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from repair" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from restore" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from restore" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from restore" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from restore" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from restore" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from restore" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from restore" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from restore" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from unfence" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from unfence" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from unfence" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from unfence" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from unfence" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from unfence" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from unfence" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from unfence" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from compact" -l key-file -d 'A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from compact" -l key-fd -d 'Read the key from this inherited file descriptor' -r
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from compact" -l passphrase-file -d 'A file whose text is the passphrase (repeatable)' -r -F
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from compact" -l dry-run -d 'Only say what would go and why, and what keeps the rest; reads, also beside a running node'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from compact" -l allow-network-fs -d 'Accept a network file system, where locks and syncs may not hold'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from compact" -l prompt -d 'Ask for the passphrase on the terminal, without echo'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from compact" -l json -d 'Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from compact" -s h -l help -d 'Print help'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from compact" -s V -l version -d 'Print version'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "init" -d 'Create a journal'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "inspect" -d 'Summarise a journal: keys, segments, executions'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Check every byte, tag, link and result'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "replay" -d 'Print one execution\'s events, offline'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "export" -d 'Write every execution as JSON lines'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "import" -d 'Make a new journal from an export'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "rekey" -d 'Change who can open the journal, and its keys'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "backup" -d 'Copy a journal, also beside its running node; again into the same place copies what is new'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "repair" -d 'Make a sound journal out of a damaged one, elsewhere, and list every loss'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "restore" -d 'Make a journal of a backup, in a new lineage and fenced'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "unfence" -d 'Lift the fence of a restored, repaired or imported journal, once the original is gone for good'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "compact" -d 'Fold finished executions and drop what was forgotten, while no node runs'
complete -c sealog -n "__fish_sealog_using_subcommand journal; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "serve" -d 'Run a node: accept executions over HTTP and journal them'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "run" -d 'Submit one text, print the answer as it streams, exit with the outcome'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "ps" -d 'List executions, the youngest first'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "show" -d 'Show what is known of one execution'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "tail" -d 'Print one execution\'s events, and follow it'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "cancel" -d 'Ask an execution to stop'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "demo" -d 'See the whole promise in a few seconds: stream, kill -9, restart, replay'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "doctor" -d 'See whether directory, disk and clock are fit for a journal'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "config" -d 'Check a configuration, and see what a node would run with'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "token" -d 'Make the bearer tokens that a node asks for'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "journal" -d 'Everything about a journal on disk: check, replay, back up, restore, repair, export, compact, change keys'
complete -c sealog -n "__fish_sealog_using_subcommand help; and not __fish_seen_subcommand_from serve run ps show tail cancel demo doctor config token journal help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "check" -d 'Say whether a node would take a configuration file'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "show" -d 'Show what a node would run with'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "new" -d 'Make a bearer token, print it once, and add its digest to a token file'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "init" -d 'Create a journal'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "inspect" -d 'Summarise a journal: keys, segments, executions'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "verify" -d 'Check every byte, tag, link and result'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "replay" -d 'Print one execution\'s events, offline'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "export" -d 'Write every execution as JSON lines'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "import" -d 'Make a new journal from an export'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "rekey" -d 'Change who can open the journal, and its keys'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "backup" -d 'Copy a journal, also beside its running node; again into the same place copies what is new'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "repair" -d 'Make a sound journal out of a damaged one, elsewhere, and list every loss'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "restore" -d 'Make a journal of a backup, in a new lineage and fenced'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "unfence" -d 'Lift the fence of a restored, repaired or imported journal, once the original is gone for good'
complete -c sealog -n "__fish_sealog_using_subcommand help; and __fish_seen_subcommand_from journal" -f -a "compact" -d 'Fold finished executions and drop what was forgotten, while no node runs'
