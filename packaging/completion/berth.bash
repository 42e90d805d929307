# bash completion for berth; tools/check-docs holds it to `berth help --json`.
_berth()
{
	local cur=${COMP_WORDS[COMP_CWORD]} word command= i
	local common="--url --key --json --help"
	local -A options=(
		[exec]="--env --workdir --timeout --shell --interactive --tty --background"
		[execs]=""
		[logs]="--follow"
		[kill]="--signal --grace"
		[run]="--runtime --profile --memory --cpus --pids --disk --name --label --lifetime --allow --network --env --workdir --timeout --interactive --tty --keep"
		[create]="--runtime --profile --memory --cpus --pids --disk --name --label --lifetime --allow --network --env"
		[shell]="--env --workdir"
		[cp]=""
		[ps]="--state --label"
		[show]=""
		[rm]="--all"
		[sleep]=""
		[wake]=""
		[limits]=""
		[usage]="--fresh"
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
		[network set]="--file --open"
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
		[host rm]="--powered-off"
		[events]=""
		[check]="--repair --abandon"
		[code]="--language --context --env --timeout"
		[doctor]="--attack --runtime --only"
		[dev]="--dir --listen --runtime --pool-size --insecure-registry --cors-origin --quiet"
		[init]="--image --no-image --listen --pool-size --dry-run"
		[version]=""
		[help]=""
	)

	# Up to the last word of the command's name; what comes behind it is an argument.
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		[[ $word == -* ]] && continue
		command=${command:+$command }$word
		[[ -v options[$command] || " ${!options[*]} " != *" $command "* ]] && break
	done
	if [[ -n $command && -v options[$command] ]]; then
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W "${options[$command]} $common" -- "$cur"))
			return
		fi
		case $command in
		cp | code | dev | "image import" | "network set" | "secret set")
			COMPREPLY=($(compgen -f -- "$cur")) ;;
		run | create)
			COMPREPLY=($(compgen -W "$(_berth_first image ls)" -- "$cur")) ;;
		exec | execs | logs | kill | shell | show | rm | limits | usage | "network show" | "network lock" | "network events")
			COMPREPLY=($(compgen -W "$(_berth_first ps)" -- "$cur")) ;;
		esac
		return
	fi
	for word in "${!options[@]}"; do
		[[ -n $command && $word != "$command "* ]] && continue
		word=${word#"${command:+$command }"}
		COMPREPLY+=($(compgen -W "${word%% *}" -- "$cur"))
	done
	mapfile -t COMPREPLY < <(printf '%s\n' "${COMPREPLY[@]}" | sort -u)
}
# The first column of a list, without its title; nothing if there is no server.
_berth_first()
{
	berth "$@" 2>/dev/null | awk 'NR > 1 { print $1 }'
}
complete -F _berth berth
