#!/bin/bash
# A real Queen for tests, beside a private PostgreSQL, both on loopback.
#
#   real.sh build   build Queen from its published crate, once per version
#   real.sh start   start both with default settings; prints the broker's URL
#   real.sh stop    stop what start started and remove its folder
#   real.sh run …   start a pair of its own, run a command with QUEEN_REAL_URL
#                   set, stop the pair; answers with the command's exit code
#   real.sh clean   stop, and remove the built broker
#
# For tests, on the running pair:
#
#   real.sh psql SQL    run a statement in the broker's database
#   real.sh db-stop     take PostgreSQL away
#   real.sh db-start    bring it back
#
# The broker is kept in ${XDG_CACHE_HOME:-$HOME/.cache}/queenbridge. Building
# takes seven minutes of two cores and needs cargo. PostgreSQL is installed
# with apt-get where its programs are missing. QUEEN_* settings in the
# environment reach the broker. QUEEN_REAL_RUN names the file that remembers a
# running pair, for those who want several.
set -euo pipefail

version=${QUEEN_REAL_VERSION:-1.3.0}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/queenbridge/queen-$version
queen=$cache/bin/queen
run=${QUEEN_REAL_RUN:-$cache/running}

say() { echo "real.sh: $*" >&2; }
die() { say "$*"; exit 1; }

build() {
	[ -x "$queen" ] && return
	command -v cargo >/dev/null || die "cargo is needed to build Queen $version"
	say "building Queen $version into $cache (about seven minutes)"
	cargo install queen-engine --version "$version" --locked --root "$cache" >&2
}

# find_postgres prints the folder of initdb and pg_ctl: Debian keeps them off
# the PATH, and the wrappers on it take other arguments.
find_postgres() {
	local dir
	for dir in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV) /usr/local/bin /usr/bin; do
		[ -x "$dir/initdb" ] && [ -x "$dir/pg_ctl" ] && echo "$dir" && return
	done
	return 1
}

postgres_bin() {
	find_postgres && return
	say "installing postgresql"
	local sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	{ $sudo apt-get update -q && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -yq --no-install-recommends postgresql; } >&2
	find_postgres || die "no initdb and pg_ctl found"
}

# as_postgres runs a command as user postgres where we are root, which
# PostgreSQL refuses.
as_postgres() {
	if [ "$(id -u)" = 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

taken=
free_port() {
	local port
	while :; do
		port=$((20000 + RANDOM % 12000))
		[[ " $taken " == *" $port "* ]] && continue
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	taken="$taken $port"
	echo "$port"
}

healthy() { [ "$(curl -s -o /dev/null -w '%{http_code}' --max-time 2 "$1/health")" = 200 ]; }

start() {
	if [ -f "$run" ] && healthy "$(cat "$(cat "$run")/url")"; then
		cat "$(cat "$run")/url"
		return
	fi
	stop
	build
	local bin dir pg_port port
	bin=$(postgres_bin)
	dir=$(mktemp -d "${TMPDIR:-/tmp}/queen-real.XXXXXX")
	mkdir -p "$(dirname "$run")"
	echo "$dir" >"$run"
	start_postgres "$bin" "$dir"
	start_broker "$dir"
	cat "$dir/url"
}

start_postgres() {
	local bin=$1 dir=$2
	pg_port=$(free_port); taken="$taken $pg_port"
	chmod 755 "$dir"
	mkdir "$dir/postgres"
	[ "$(id -u)" = 0 ] && chown postgres "$dir/postgres"
	echo "$bin" >"$dir/bin"
	as_postgres "$bin/initdb" -D "$dir/postgres/data" -U postgres -A trust -E UTF8 --no-sync >"$dir/initdb.log" 2>&1 ||
		die "initdb: $(tail -3 "$dir/initdb.log")"
	echo "$pg_port" >"$dir/pg_port"
	db_start || die "PostgreSQL did not start: see $dir/postgres/log"
}

start_broker() {
	local dir=$1
	port=$(free_port); taken="$taken $port"
	mkdir "$dir/spool"
	PG_HOST=127.0.0.1 PG_PORT=$(cat "$dir/pg_port") PG_USER=postgres PG_PASSWORD=postgres PG_DATABASE=postgres \
		DB_POOL_SIZE=${DB_POOL_SIZE:-20} PORT=$port QUEEN_BIND_ADDR=127.0.0.1 QUEEN_MESH_PORT=$(free_port) FILE_BUFFER_DIR=$dir/spool \
		setsid nohup "$queen" >"$dir/queen.log" 2>&1 </dev/null &
	local pid=$!
	echo "$pid" >"$dir/queen.pid"
	disown "$pid"
	echo "http://127.0.0.1:$port" >"$dir/url"
	for _ in $(seq 300); do
		healthy "$(cat "$dir/url")" && return
		kill -0 "$pid" 2>/dev/null || die "the broker exited: $(tail -3 "$dir/queen.log")"
		read -rt 0.1 <> <(:) || true
	done
	die "the broker is not healthy after 30 s: see $dir/queen.log"
}

# ours says that a process is the broker: its number may be somebody else's
# by now.
ours() { [ "$(readlink "/proc/$1/exe" 2>/dev/null)" = "$(readlink -f "$queen")" ]; }

stop() {
	[ -f "$run" ] || return 0
	local dir pid
	dir=$(cat "$run")
	if [ -f "$dir/queen.pid" ]; then
		pid=$(cat "$dir/queen.pid")
		ours "$pid" && kill "$pid"
		for _ in $(seq 50); do
			ours "$pid" || break
			read -rt 0.1 <> <(:) || true
		done
		ours "$pid" && kill -9 "$pid" || true
	fi
	if [ -d "$dir/postgres/data" ]; then
		as_postgres "$(cat "$dir/bin")/pg_ctl" -D "$dir/postgres/data" -m immediate -w stop >/dev/null 2>&1 || true
	fi
	case $dir in */queen-real.*) rm -rf "$dir" ;; esac
	rm -f "$run"
}

# run_with runs a command beside a pair that nobody else uses.
run_with() {
	run=$(mktemp "${TMPDIR:-/tmp}/queen-real-run.XXXXXX")
	rm "$run"
	trap stop EXIT
	QUEEN_REAL_URL=$(start) || exit 1
	export QUEEN_REAL_URL QUEEN_REAL_RUN=$run
	"$@"
}

# running prints the folder of the running pair.
running() { [ -f "$run" ] && cat "$run" || die "no broker is running"; }

db_psql() {
	local dir
	dir=$(running)
	"$(cat "$dir/bin")/psql" -h 127.0.0.1 -p "$(cat "$dir/pg_port")" -U postgres -v ON_ERROR_STOP=1 -Atqc "$1"
}

db_stop() {
	local dir
	dir=$(running)
	as_postgres "$(cat "$dir/bin")/pg_ctl" -D "$dir/postgres/data" -m immediate -w stop >/dev/null
}

db_start() {
	local dir
	dir=$(running)
	as_postgres "$(cat "$dir/bin")/pg_ctl" -D "$dir/postgres/data" -w -l "$dir/postgres/log" \
		-o "-p $(cat "$dir/pg_port") -c listen_addresses=127.0.0.1 -c unix_socket_directories=$dir/postgres" start >/dev/null
}

case ${1:-} in
psql) db_psql "$2" ;;
db-stop) db_stop ;;
db-start) db_start ;;
run)
	shift
	run_with "$@"
	;;
build | start | stop) "$1" ;;
clean)
	stop
	rm -rf "$cache"
	;;
*)
	sed -n '2,22s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
