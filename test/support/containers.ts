/** Runs processes in containers with the same host name and file system but separate process ids. */
import { spawnSync } from 'node:child_process'

const NAMESPACE = ['unshare', '-Urmpf', '--kill-child']

/** Command prefix that starts a command in a new container. Its first process can be ended only with SIGKILL. */
const ALL: readonly (readonly [name: string, words: readonly string[]])[] = [
  ['without a container', []],
  ['with a /proc of its own', [...NAMESPACE, '--mount-proc']],
  ['with the /proc of the host', NAMESPACE],
  ['without /proc', [...NAMESPACE, 'sh', '-c', 'mount -t tmpfs tmpfs /proc && exec "$@"', 'sh']],
]

/** Whether a container can mount its own file systems. */
export const canMount =
  spawnSync('unshare', ['-rm', 'sh', '-c', 'mount -t tmpfs tmpfs /mnt && mount -o remount,ro /mnt'])
    .status === 0

/** Containers that this system can create. */
export const containers = ALL.filter(([, [command, ...words]]) =>
  command === undefined ? true : spawnSync(command, [...words, 'true']).status === 0,
)
