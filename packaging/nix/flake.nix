# Builds proctrace from this repository: nix build ./packaging/nix, or nix run ./packaging/nix -- record -- ./job.sh;
# nix build './packaging/nix#recorder' builds what only records.
#
# Parsed by nix 2.8; not built, for want of nixpkgs. It has no lock file for the same reason: nix makes one.
{
  description = "What did this job really run, and what did it cost?";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";

  outputs =
    { nixpkgs, ... }:
    let
      # The repository, of which this flake is a folder.
      source = ../..;
      of = system: nixpkgs.legacyPackages.${system};
      each = nixpkgs.lib.genAttrs [ "x86_64-linux" "aarch64-linux" ];
      cargo = builtins.fromTOML (builtins.readFile (source + "/Cargo.toml"));
      # What both packages have in common; `program` writes its man pages and completions itself.
      package =
        system: program: own:
        (of system).rustPlatform.buildRustPackage (
          {
            pname = program;
            version = cargo.workspace.package.version;
            src = source;
            cargoLock.lockFile = source + "/Cargo.lock";
            nativeBuildInputs = [ (of system).installShellFiles ];
            # They record, which the sandbox of a build does not allow.
            doCheck = false;
            meta.mainProgram = program;
            meta.license = with nixpkgs.lib.licenses; [ mit asl20 gpl2Only ];
          }
          // own
          // {
            postInstall = ''
              mkdir -p man && $out/bin/${program} man man
              installManPage man/*
              for shell in bash zsh fish; do
                $out/bin/${program} completions $shell > completions
                installShellCompletion --cmd ${program} --$shell completions
              done
            '' + (own.postInstall or "");
          }
        );
    in
    {
      packages = each (system: {
        default = package system "proctrace" {
          buildType = "dist";
          cargoBuildFlags = [ "--package=proctrace" "--package=proctrace-broker" ];
          postInstall = ''
            install -Dm644 -t $out/lib/systemd/system crates/broker/systemd/*
            substituteInPlace $out/lib/systemd/system/proctrace-broker.service --replace-fail /usr/bin $out/bin
          '';
        };
        recorder = package system "proctrace-recorder" {
          buildType = "dist-recorder";
          buildNoDefaultFeatures = true;
          cargoBuildFlags = [ "--package=proctrace-recorder" ];
        };
      });
    };
}
