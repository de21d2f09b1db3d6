/** Parts of which several processes, or several downloads of one, know. */
import {
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { broken, host, into, OTHER, partIn, sha256, WHOLE } from './breaking-host.js'
import { contents, createWork, newFolder, output } from './download-setup.js'

/** More than any system counts to. */
const NOBODY = 2 ** 31 - 1

describe('a part', () => {
  it('whoever still writes to a part that another process has taken does no harm', async () => {
    const folder = newFolder()
    await broken(folder)
    const handle = openSync(join(folder, partIn(folder), 'bytes'), 'r+')
    try {
      const next = await host({ file: OTHER })
      await createWork().download([output(next.url)], into(folder))
      writeSync(handle, 'the end of another file', 200_000)
      expect(sha256(readFileSync(join(folder, 'run-1.png')))).toBe(sha256(OTHER))
    } finally {
      closeSync(handle)
    }
  })

  it('of several the longest is gone on with, and the others are removed', async () => {
    const folder = newFolder()
    await broken(folder)
    const name = partIn(folder)
    for (const [at, bytes] of [120_000, 110_000].entries()) {
      const own = join(folder, name.replace(/part$/, `${NOBODY}-0-${at}.part`))
      cpSync(join(folder, name), own, { recursive: true })
      writeFileSync(join(own, 'bytes'), WHOLE.subarray(0, bytes))
    }
    const next = await host({})
    await createWork().download([output(next.url)], into(folder))
    expect(next.ranges()).toEqual(['bytes=120000-'])
    expect(sha256(readFileSync(join(folder, 'run-1.png')))).toBe(sha256(WHOLE))
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it.runIf(process.platform === 'linux')('an earlier process of our own number is gone', async () => {
    const folder = newFolder()
    await broken(folder)
    const name = partIn(folder)
    renameSync(join(folder, name), join(folder, name.replace(/part$/, `${process.pid}-1-0.part`)))
    const next = await host({})
    await createWork().download([output(next.url)], into(folder))
    expect(next.ranges()).toEqual(['bytes=100000-'])
  })

  it('what is not a part of ours is left alone', async () => {
    const folder = newFolder()
    await broken(folder)
    const name = partIn(folder)
    mkdirSync(join(folder, 'mine.part'))
    writeFileSync(join(folder, `${name}.txt`), '')
    const next = await host({})
    await createWork().download([output(next.url)], into(folder))
    expect(readdirSync(folder).sort()).toEqual([`${name}.txt`, 'mine.part', 'run-1.png'].sort())
  })
})

describe('several at once', () => {
  it('on one target do not disturb each other: the first is in place, the other says so', async () => {
    const folder = newFolder()
    const { url } = await host({})
    const target = { kind: 'template', template: join(folder, 'fox.png') } as const
    const both = await Promise.all([1, 2].map(() => createWork().download([output(url)], { target })))
    expect(
      both
        .flat()
        .map(({ ok }) => ok)
        .sort(),
    ).toEqual([false, true])
    expect(sha256(readFileSync(join(folder, 'fox.png')))).toBe(sha256(WHOLE))
    expect(contents(folder)).toEqual(['fox.png'])
  })

  it('that were broken off leave one part', async () => {
    const folder = newFolder()
    const { url } = await host({ breakAfter: 100_000 })
    const work = () => createWork().download([output(url)], into(folder))
    await Promise.all([work(), work(), work()])
    expect(readdirSync(folder)).toHaveLength(1)
  })
})
