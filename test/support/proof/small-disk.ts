/** A disk of a few MiB in memory. It can be filled and emptied while the program uses it. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Place, type Running, start } from '../binary.js'
import { until } from '../until.js'

/** Whether this machine allows mounting one in a namespace. */
export const canMount =
  process.platform === 'linux' &&
  spawnSync('unshare', ['-rm', 'sh', '-c', 'mount -t tmpfs -o size=64k tmpfs /mnt']).status === 0 &&
  spawnSync('nsenter', ['--version']).status === 0

export interface SmallDisk {
  /** Path as seen by the program. */
  readonly path: string
  /** Path as seen by this process. */
  readonly outside: string
  /** Starts a command in the namespace where the disk is mounted. */
  start(place: Place, words: readonly string[]): Running
  /** Fills the disk until no byte is free. */
  fill(): void
  free(): void
}

export async function mountSmallDisk(place: Place, mebibytes: number): Promise<SmallDisk> {
  const path = join(place.home, 'disk')
  mkdirSync(path)
  const script = `mount -t tmpfs -o size=${mebibytes}m tmpfs "$0" && exec sleep 600`
  const holder = spawn('unshare', ['-rm', 'sh', '-c', script, path], { stdio: 'ignore' })
  onTestFinished(() => void holder.kill('SIGKILL'))
  const outside = `/proc/${holder.pid}/root${path}`
  const filler = join(outside, 'filler')
  await until('a small disk', () => statfsOf(outside)?.blocks === mebibytes * 256)
  return {
    path,
    outside,
    start: (of, words) =>
      start(
        of,
        [
          '-t',
          String(holder.pid),
          '-U',
          '-m',
          '--preserve-credentials',
          join(of.home, '../bin/rushes'),
          ...words,
        ],
        { command: 'nsenter', stdin: 'ignore' },
      ),
    fill() {
      for (let left = freeBytes(outside); left > 0; left = freeBytes(outside))
        try {
          writeFileSync(filler, Buffer.alloc(left), { flag: 'a' })
        } catch {
          // Another process has used the space first.
        }
    },
    free: () => rmSync(filler, { force: true }),
  }
}

function statfsOf(path: string) {
  try {
    return statfsSync(path)
  } catch {
    return undefined
  }
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}
