// A step of a shared library: proctrace run: './job.sh', budget: 'ci/gate.toml'. docs/ci.md explains it.

def call(Map inputs) {
    String name = inputs.name ?: 'proctrace'
    // A folder for each recording, of a name that means nothing to a shell or to a pattern of files.
    String folder = 'proctrace-ci/' + name.replaceAll('[^A-Za-z0-9_-]', '-')
    List variables = [
        "PROCTRACE_CI_COMMANDS=${pwd()}/${folder}.run",
        "PROCTRACE_CI_NAME=${name}",
        "PROCTRACE_CI_BUDGET=${inputs.budget ?: ''}",
        "PROCTRACE_CI_BASELINE=${inputs.baseline ?: ''}",
        "PROCTRACE_CI_HTML=${inputs.html == null ? true : inputs.html}",
        "PROCTRACE_CI_DIRECTORY=${inputs.directory ?: ''}",
        "PROCTRACE_CI_BINARY=${inputs.binary ?: ''}",
        "PROCTRACE_CI_VERSION=${inputs.version ?: ''}",
        "PROCTRACE_CI_RELEASES=${inputs.releases ?: ''}",
        "PROCTRACE_CI_OUT=${pwd()}/${folder}",
        "PROCTRACE_CI_SCRIPT=${inputs.script ?: '/usr/local/share/proctrace/proctrace-ci'}",
    ]
    // A file, as values of withEnv may have their $ replaced.
    writeFile(file: "${folder}.run", text: inputs.run, encoding: 'UTF-8')
    int status = 1
    try {
        withEnv(variables) {
            // A constant, in which Groovy replaces nothing.
            status = sh(returnStatus: true, label: "proctrace: ${name}", script: '''#!/bin/sh
                PROCTRACE_CI_RUN=$(cat "$PROCTRACE_CI_COMMANDS")
                export PROCTRACE_CI_RUN
                rm -f "$PROCTRACE_CI_COMMANDS"
                script=$PROCTRACE_CI_SCRIPT
                unset PROCTRACE_CI_SCRIPT PROCTRACE_CI_COMMANDS
                if [ ! -r "$script" ]; then
                    address=$PROCTRACE_CI_RELEASES/$PROCTRACE_CI_VERSION/proctrace-ci
                    { script=$(mktemp) && curl -fsSL --retry 3 -o "$script" "$address"; } || script=
                fi
                if [ -n "$script" ]; then
                    sh "$script"
                else
                    echo 'proctrace: warning: proctrace-ci cannot be had. The commands run without a recorder' >&2
                    sh -e -c "$PROCTRACE_CI_RUN"
                fi
            ''')
        }
    } finally {
        archiveArtifacts(artifacts: "${folder}/**", allowEmptyArchive: true)
        junit(testResults: "${folder}/gate.xml", allowEmptyResults: true)
    }
    if (status != 0) {
        error("proctrace: ${name} ended with status ${status}")
    }
}
