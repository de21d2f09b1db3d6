/** Disks that are really full: small file systems in memory, mounted in a namespace of the test's own. */
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { canMount } from '../support/containers.js'
import { randomOutput } from '../support/engines.js'
import {
  bash,
  createPlace,
  lines,
  type Place,
  personAt,
  quickEngines,
  quoted,
  rowsOf,
  runCli,
  type Service,
  serveQuickly,
  withStateOfCli,
} from '../support/index.js'

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
    const user = withStateOfCli(createPlace())
    const { code, stdout, stderr } = await withSmallDisk(
      user,
      64,
      `rushes run image --local "a fox" -o "$small/fox.png"; echo "exit $?"
       ls -A "$small"`,
    )
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'exit 12\n' })
    expect(stderr).toMatch(/Could not write .*fox\.png: no space left on the disk/)
    expect(stderr).toMatch(/is paid for.*rushes download --local -o .*fox\.png run_\w+/)
    const path = join(user.folder, 'fox.png')
    const elsewhere = await runCli(`download --local --last -o ${path}`, { home: user.home })
    expect(elsewhere).toMatchObject({ code: 0, stdout: `${path}\n` })
  })

  it('for a backup ends with 2 and leaves no file', async () => {
    const place = createPlace()
    const data = join(place.home, 'data')
    await runCli(`admin account create acme --data ${data}`)
    const { code, stdout, stderr } = await withSmallDisk(
      place,
      16,
      `rushes admin backup "$small/b.db" --data ${data}; echo "exit $?"; ls -A "$small"`,
    )
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'exit 2\n' })
    expect(stderr).toMatch(/Cannot write the backup .*b\.db: no space left on the disk\./)
  })

  it.each([60, 140])(
    'that fills up under the journal (%i KiB) loses no run without a warning',
    async (kibibytes) => {
      const place = await personAt(service)
      const { stdout, stderr } = await withSmallDisk(
        place,
        kibibytes,
        `export RUSHES_STATE_DIR="$small/state"
       for n in 1 2; do rushes run image "a fox $n" -n 3 --no-wait || echo "exit $?"; done
       cp -r "$small/state" "$HOME"`,
      )
      expect(lines(stdout)).toEqual(Array(6).fill(expect.stringMatching(/^run_/)))
      if (rowsOf(place.home).length < 6)
        expect(stderr).toMatch(/journal\.db: no space left on the disk\. .*will not be remembered/)
      expect(stderr).not.toMatch(/rollback|damaged/)
    },
  )

  it('during a batch ends with 12, and a later batch continues without paying twice', async () => {
    const user = await personAt(service)
    const { stdout, stderr } = await withSmallDisk(
      user,
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
       ls *.mp4 | wc -l`,
    )
    expect({ stdout, stderr }).toMatchObject({ stdout: 'exit 12\n0\nexit 0\n3\n' })
    expect(stderr).toMatch(/no space left on the disk/)
    expect(rowsOf(user.home)).toHaveLength(3)
  })
})
