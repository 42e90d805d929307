# bash completion for berth; tools/check-docs holds it to `berth help --json`.
_berth()
{
	local cur=${COMP_WORDS[COMP_CWORD]} word command= i
	local common="--url --key --json --help"
	local -A options=(
		[exec]="--env --workdir --timeout --shell --interactive --background"
		[execs]=""
		[logs]="--follow"
		[kill]="--signal --grace"
		[run]="--runtime --profile --memory --cpus --pids --disk --name --label --allow --env --workdir --timeout --interactive --keep"
		[shell]="--env --workdir"
		[cp]=""
		[ps]=""
		[rm]="--all"
		[limits]=""
		[usage]=""
		[image pull]="--name"
		[image import]=""
		[image ls]=""
		[image rm]=""
		[key create]="--role"
		[key ls]=""
		[key rm]=""
		[policy add]="--isolation --profile --runtime"
		[policy ls]=""
		[policy rm]=""
		[network show]=""
		[network set]="--file"
		[network lock]=""
		[network events]=""
		[secret set]="--host --header --method --path"
		[secret ls]=""
		[secret rm]=""
		[profile ls]=""
		[profile add]=""
		[profile rm]=""
		[host ls]=""
		[host show]=""
		[host drain]=""
		[host undrain]=""
		[host rm]=""
		[events]=""
		[check]="--repair"
		[code]="--language --context --env --timeout"
		[doctor]="--attack --runtime --only"
		[dev]="--dir --listen --runtime --pool-size --insecure-registry --quiet"
		[init]="--image --no-image --listen --pool-size --dry-run"
		[version]=""
		[help]=""
	)

	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		[[ $word == -* ]] && continue
		command=${command:+$command }$word
		[[ -v options[$command] ]] && break
		[[ $command == image || $command == key || $command == policy || $command == profile || $command == host ||
			$command == network || $command == secret ]] || break
	done
	if [[ -n $command && -v options[$command] ]]; then
		[[ $cur == -* ]] && COMPREPLY=($(compgen -W "${options[$command]} $common" -- "$cur"))
		[[ -z ${COMPREPLY[*]} ]] && COMPREPLY=($(compgen -f -- "$cur"))
		return
	fi
	for word in "${!options[@]}"; do
		[[ $word == "$command "* ]] && word=${word#"$command "}
		[[ -z $command || $word != *" "* ]] && COMPREPLY+=($(compgen -W "${word%% *}" -- "$cur"))
	done
}
complete -F _berth berth
