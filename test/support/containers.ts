/** Processes in containers: with the same host name and file system, and separate process ids. */
import { spawnSync } from 'node:child_process'

const NAMESPACE = ['unshare', '-Urmpf', '--kill-child']

/** The words before a command that start it in a new container. A signal to the first process must be SIGKILL. */
const ALL: readonly (readonly [name: string, words: readonly string[]])[] = [
  ['without a container', []],
  ['with a /proc of its own', [...NAMESPACE, '--mount-proc']],
  ['with the /proc of the host', NAMESPACE],
  ['without /proc', [...NAMESPACE, 'sh', '-c', 'mount -t tmpfs tmpfs /proc && exec "$@"', 'sh']],
]

/** Those that this system can make. */
export const containers = ALL.filter(([, [command, ...words]]) =>
  command === undefined ? true : spawnSync(command, [...words, 'true']).status === 0,
)
