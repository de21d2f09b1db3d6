/** Disks that are really full: small file systems in memory, mounted in a namespace of the test's own. */
import { spawnSync } from 'node:child_process'
import { beforeAll, describe, expect, it } from 'vitest'
import { randomOutput } from '../support/engines.js'
import {
  bash,
  createPlace,
  type Place,
  personAt,
  quickEngines,
  quoted,
  type Service,
  serveQuickly,
} from '../support/index.js'

const canMount =
  spawnSync('unshare', ['-rm', 'sh', '-c', 'mount -t tmpfs -o size=64k tmpfs /mnt']).status === 0

/** Runs a script in which `$small` is a folder with room for so many KiB. */
const withSmallDisk = (place: Place, kibibytes: number, script: string) =>
  bash(
    place,
    `small=$PWD/small; mkdir -p "$small"; export small
     exec unshare -rm bash -c ${quoted(`mount -t tmpfs -o size=${kibibytes}k tmpfs "$small" || exit 99\n${script}`)}`,
  )

describe.skipIf(!canMount).concurrent('a full disk', () => {
  let service: Service
  beforeAll(async () => {
    // Three videos do not fit on the disk below.
    const video = `video=${randomOutput('a.mp4', 150_000)}`
    service = await serveQuickly([...quickEngines().slice(0, 2), '--engine', video])
  })

  it('for the output ends with 12 and leaves no file, and the run can be downloaded elsewhere', async () => {
    const { code, stdout, stderr } = await withSmallDisk(
      createPlace(),
      64,
      `rushes run image --local "a fox" -o "$small/fox.png"; echo "exit $?"
       ls -A "$small"
       rushes download --local "$(rushes list --json | head -1 | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')" -o fox.png`,
    )
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'exit 12\nfox.png\n' })
    expect(stderr).toMatch(/Could not write .*fox\.png: no space left on the disk/)
    expect(stderr).toMatch(/is paid for.*rushes download --local -o .*fox\.png run_\w+/)
  })

  it('for a backup ends with 2 and leaves no file, as does a read-only disk', async () => {
    const { code, stdout, stderr } = await withSmallDisk(
      createPlace(),
      16,
      `rushes admin account create acme --data data
       rushes admin backup "$small/b.db" --data data; echo "exit $?"; ls -A "$small"
       mount -o remount,ro "$small"
       rushes admin backup "$small/b.db" --data data; echo "exit $?"; ls -A "$small"`,
    )
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'acme\nexit 2\nexit 2\n' })
    expect(stderr).toMatch(/Cannot write the backup .*b\.db: no space left on the disk\./)
    expect(stderr).toMatch(/Cannot write the backup .*b\.db: read-only file system\./)
  })

  it.each([60, 140])(
    'that fills up under the journal (%i KiB) loses no run without a warning',
    async (kibibytes) => {
      const { stdout, stderr } = await withSmallDisk(
        await personAt(service),
        kibibytes,
        `export RUSHES_STATE_DIR="$small/state"
       for n in 1 2; do rushes run image "a fox $n" -n 3 --no-wait || echo "exit $?"; done
       rushes list --json 2>/dev/null | wc -l`,
      )
      const lines = stdout.trim().split('\n')
      expect(lines.slice(0, 6).every((line) => line.startsWith('run_'))).toBe(true)
      const kept = Number(lines[6])
      if (kept < 6)
        expect(stderr).toMatch(/journal\.db: no space left on the disk\. .*will not be remembered/)
      expect(stderr).not.toMatch(/rollback|damaged/)
    },
  )

  it('during a batch ends with 12, and a later batch continues without paying twice', async () => {
    const { stdout, stderr } = await withSmallDisk(
      await personAt(service),
      300,
      `cat > "$small/shots.yaml" <<'END'
defaults: { kind: video }
runs:
  - { name: one, prompt: one }
  - { name: two, prompt: two }
  - { name: three, prompt: three }
END
       rushes batch "$small/shots.yaml" >/dev/null; echo "exit $?"
       find "$small" -name '.*.part' | wc -l
       cp "$small"/* .
       rushes batch shots.yaml >/dev/null; echo "exit $?"
       ls *.mp4 | wc -l
       rushes list --limit 0 | wc -l`,
    )
    expect({ stdout, stderr }).toMatchObject({ stdout: 'exit 12\n0\nexit 0\n3\n3\n' })
    expect(stderr).toMatch(/no space left on the disk/)
  })
})
