/**
 * Keeps temporary files of tests in memory if there is enough room: SQLite and the journal wait for the disk at each
 * commit, which would be most of a test's time.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeFolder } from '../../../src/host/own-folder.js'

/** Minimum free space. Containers often have 64 MiB, which a test with large files would fill. */
const MIN_FREE_BYTES = 2 * 1_024 ** 3
const FOLDER = '/dev/shm'

/** Returns a folder for temporary files: in memory, or the system's default. */
export function memoryFolder(): string {
  try {
    accessSync(FOLDER, constants.W_OK)
    const { bavail, bsize } = statfsSync(FOLDER)
    return bavail * bsize >= MIN_FREE_BYTES && runsPrograms(FOLDER) ? FOLDER : tmpdir()
  } catch {
    return tmpdir()
  }
}

/** Whether programs can run there: containers may mount the folder with `noexec`, and tests write scripts. */
function runsPrograms(parent: string): boolean {
  const folder = mkdtempSync(join(parent, 'rushes-tests-'))
  try {
    const script = join(folder, 'script')
    writeFileSync(script, '#!/bin/sh\n', { mode: 0o700 })
    return spawnSync(script).status === 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * For `globalSetup`: sets TMPDIR to a new folder in `memoryFolder` for all test processes, unless it is already set.
 */
export default function setup(): (() => Promise<void>) | undefined {
  if (process.env.TMPDIR) return undefined
  const folder = mkdtempSync(join(memoryFolder(), 'rushes-tests-'))
  // Some tests run programs as another user.
  chmodSync(folder, 0o1777)
  process.env.TMPDIR = folder
  return () => removeFolder(folder)
}
