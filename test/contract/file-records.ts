/** What every store keeps to about files and the runs that need them. */
import { expect, test } from 'vitest'
import { type FileName, MAX_MARKED, type Store } from '../../src/service/store/contract.js'
import { outputKey, type StoredOutput } from '../../src/service/stored-run.js'
import { claimRun, newRun } from '../support/runs.js'

const HOUR_MS = 3_600_000
const IMAGE = { sha256: 'a1b2', bytes: 3 }
const OUTPUT: StoredOutput = { token: 't', name: 'a.png', contentType: 'image/png', bytes: 3, sha256: 'abc' }
const OUTPUT_FILE: FileName = { kind: 'output', key: outputKey(OUTPUT) }

/** `open` gives an empty store; it is called within each test. */
export function fileRecordsContract(open: () => Store | Promise<Store>): void {
  /** With one worker, `me`. */
  async function createStore() {
    const store = await open()
    await store.renewLease('me')
    const accountId = await store.ensureAccount({ name: 'default', credits: 100, nowMs: 0 })
    const create = (id: string, files: readonly FileName[] = [], price = 0) =>
      store.addRun(newRun({ id, accountId, price, files }), ({ balance }) => {
        if (balance < price) throw new Error('insufficient balance')
      })
    const holdImage = async (image = IMAGE, nowMs = 0): Promise<FileName> => ({
      kind: 'input',
      key: await store.holdImage(image, nowMs),
    })
    /** With a run that took it, and has ended. */
    const storeImage = async (image = IMAGE, nowMs = 0): Promise<FileName> => {
      const file = await holdImage(image, nowMs)
      await create(`first_${file.key}`, [file])
      await store.failRun(await claimed(`first_${file.key}`), { code: 'x', message: 'y' })
      return file
    }
    const marked = () => store.listMarkedFiles(MAX_MARKED, undefined)
    const claimed = async (id: string) => {
      await claimRun(store, 'me', { only: [id] })
      return { id, owner: 'me', nowMs: 9 }
    }
    return { store, create, holdImage, storeImage, marked, claimed }
  }

  test('an image is entered once, and is stored with the first run that takes it', async () => {
    const { store, create, holdImage } = await createStore()
    const file = await holdImage()
    expect(file).toEqual({ kind: 'input', key: 'a1b2' })
    expect(await holdImage(IMAGE, 1)).toEqual(file)
    expect(await create('run', [file, file])).toEqual({ id: 'run' })
    expect(await create('second', [await holdImage(IMAGE, 2)])).toEqual({ id: 'second' })
    expect(await store.markOrphans(HOUR_MS, HOUR_MS)).toBe(0)
    expect(await create('third', [{ kind: 'input', key: 'none' }])).toEqual({ refused: 'file_removed' })
    expect(await store.findImage('a1b2')).toBe('a1b2')
    expect(await store.findImage('none')).toBeUndefined()
  })

  test('an image of a create that was refused is an orphan after a while', async () => {
    const { store, create, holdImage, marked } = await createStore()
    const [image, other] = [await holdImage(), await holdImage({ sha256: 'other', bytes: 1 })]
    const none = { kind: 'input', key: 'none' } as const
    await expect(create('too dear', [image], 101)).rejects.toThrow('insufficient balance')
    expect(await create('removed', [image, none])).toEqual({ refused: 'file_removed' })
    expect(await create('accepted', [other])).toEqual({ id: 'accepted' })
    expect(await store.markOrphans(1, HOUR_MS)).toBe(1)
    expect(await marked()).toEqual([image])
  })

  test('images that are held at the same moment have one key', async () => {
    const { store } = await createStore()
    const held = await Promise.all(Array.from({ length: 20 }, (_, at) => store.holdImage(IMAGE, at)))
    expect(new Set(held)).toEqual(new Set(['a1b2']))
  })

  test('only an old image that no unfinished run needs is marked, once', async () => {
    const { store, create, storeImage, marked, claimed } = await createStore()
    const [needed, rendered, free] = [
      await storeImage({ sha256: 'needed', bytes: 1 }),
      await storeImage({ sha256: 'rendered', bytes: 1 }),
      await storeImage({ sha256: 'free', bytes: 1 }),
    ]
    await storeImage({ sha256: 'young', bytes: 1 }, 100)
    await create('one', [needed, rendered])
    await create('two', [rendered, free])
    const [one, two] = [await claimed('one'), await claimed('two')]
    await store.failRun(two, { code: 'x', message: 'y' })
    expect(await store.markOldFiles('output', 100, 100)).toBe(0)
    expect(await store.markOldFiles('input', 100, 100)).toBe(1)
    expect(await store.markOldFiles('input', 100, 100)).toBe(0)
    expect(await marked()).toEqual([free])
    await store.recordCrash(one, { crashes: 3, failure: { code: 'x', message: 'y' } })
    expect(await store.markOldFiles('input', 100, 100)).toBe(0)
    await store.finishRun(await claimed('one'), [])
    expect(await store.markOldFiles('input', 100, 100)).toBe(2)
    expect(await marked()).toEqual([free, needed, rendered])
  })

  test('whoever takes an image again begins its age anew', async () => {
    const { store, storeImage } = await createStore()
    await storeImage()
    await store.holdImage(IMAGE, HOUR_MS)
    expect(await store.markOldFiles('input', HOUR_MS, HOUR_MS)).toBe(0)
    expect(await store.markOldFiles('input', HOUR_MS + 1, HOUR_MS)).toBe(1)
  })

  test('an image that is marked is not taken, and comes again under another key until its own is free', async () => {
    const { store, create, storeImage, marked } = await createStore()
    const file = await storeImage()
    await store.markOldFiles('input', 100, 100)
    expect(await create('late', [file])).toEqual({ refused: 'file_removed' })
    expect(await store.findImage(IMAGE.sha256)).toBeUndefined()
    const again = await storeImage(IMAGE, 101)
    expect(again.key).toMatch(/^a1b2-[0-9a-f]{16}$/)
    expect(await store.findImage(IMAGE.sha256)).toBe(again.key)
    expect(await create('again', [again])).toEqual({ id: 'again' })
    expect(await marked()).toEqual([file])
    expect(await store.recordRemoved(file, 200)).toBe(true)
    expect(await store.recordRemoved(file, 200)).toBe(false)
    expect(await store.recordRemoved(again, 200)).toBe(false)
    expect(await marked()).toEqual([])
    // Another node may still be removing it.
    await store.forgetRemoved(200)
    await store.holdImage({ sha256: 'a1b2', bytes: 3 }, 201)
    expect(await store.findImage(IMAGE.sha256)).toBe(again.key)
    await store.forgetRemoved(201)
    await store.markUnknownFiles('input', ['a1b2'], 300)
    expect(await marked()).toEqual([file])
  })

  test('creates and sweeps at the same moment: a create that was accepted keeps its image', async () => {
    const { store, create, storeImage, marked } = await createStore()
    for (let round = 0; round < 20; round++) {
      const image = { sha256: `image_${round}`, bytes: 1 }
      const file = await storeImage(image)
      const [added] = await Promise.all([
        create(`run_${round}`, [file]),
        store.markOldFiles('input', 100, 100),
        store.markOldFiles('input', 100, 100),
      ])
      const isMarked = (await marked()).some(({ key }) => key === file.key)
      expect('id' in added, `round ${round}`).toBe(!isMarked)
    }
  })

  test('an output is entered by its worker alone, and stored with the end of its run', async () => {
    const { store, create, marked, claimed } = await createStore()
    await create('run')
    const held = await claimed('run')
    expect(await store.addOutputFiles({ ...held, owner: 'other' }, [OUTPUT])).toBe(false)
    expect(await store.addOutputFiles(held, [OUTPUT])).toBe(true)
    expect(await store.addOutputFiles(held, [OUTPUT])).toBe(true)
    expect(await store.markOrphans(HOUR_MS, HOUR_MS)).toBe(0)
    expect(await store.finishRun(held, [OUTPUT])).toBe(true)
    expect(await store.markOrphans(HOUR_MS, HOUR_MS)).toBe(0)
    expect(await store.markOldFiles('output', 9, 20)).toBe(0)
    expect(await store.markOldFiles('output', 10, 20)).toBe(1)
    expect(await marked()).toEqual([OUTPUT_FILE])
    expect(await store.addOutputFiles(held, [OUTPUT])).toBe(false)
  })

  test.each<[how: string, end: (store: Store) => Promise<unknown>]>([
    ['failed', (store) => store.failRun({ id: 'run', owner: 'me', nowMs: 9 }, { code: 'x', message: 'y' })],
    ['went back to the queue', (store) => store.releaseWorker('me', 9)],
    [
      'succeeded with other outputs',
      (store) => store.finishRun({ id: 'run', owner: 'me', nowMs: 9 }, [{ ...OUTPUT, token: 'other' }]),
    ],
  ])('outputs of a run that %s are orphans', async (_how, end) => {
    const { store, create, marked, claimed } = await createStore()
    await create('run')
    await store.addOutputFiles(await claimed('run'), [OUTPUT])
    await end(store)
    expect(await store.markOrphans(0, 10)).toBe(1)
    expect(await marked()).toEqual([OUTPUT_FILE])
  })

  test('outputs of a worker whose run another renders are orphans', async () => {
    const { store, create, marked, claimed } = await createStore()
    await create('run')
    await store.addOutputFiles(await claimed('run'), [OUTPUT])
    await store.releaseWorker('me', 9)
    await store.renewLease('other')
    expect(await claimRun(store, 'other')).toMatchObject({ id: 'run' })
    const second = { ...OUTPUT, token: 'second' }
    await store.addOutputFiles({ id: 'run', owner: 'other', nowMs: 9 }, [second])
    expect(await store.markOrphans(0, 10)).toBe(1)
    expect(await marked()).toEqual([OUTPUT_FILE])
  })

  test('an image whose create ended before its bytes were stored is an orphan after a while', async () => {
    const { store, marked } = await createStore()
    await store.holdImage(IMAGE, 0)
    expect(await store.markOrphans(0, HOUR_MS)).toBe(0)
    expect(await store.markOrphans(1, HOUR_MS)).toBe(1)
    expect(await marked()).toEqual([{ kind: 'input', key: 'a1b2' }])
  })

  test('an output that an unfinished run needs stays; a create leaves out one that was removed', async () => {
    const { store, create, marked, claimed } = await createStore()
    await create('first')
    await store.finishRun(await claimed('first'), [OUTPUT])
    const gone = { kind: 'output', key: 'gone/a.png' } as const
    expect(await create('second', [OUTPUT_FILE, gone])).toEqual({ id: 'second' })
    expect(await store.markOldFiles('output', 100, 100)).toBe(0)
    await store.finishRun(await claimed('second'), [])
    expect(await store.markOldFiles('output', 100, 100)).toBe(1)
    expect(await create('third', [OUTPUT_FILE])).toEqual({ id: 'third' })
    expect(await marked()).toEqual([OUTPUT_FILE])
  })

  test('a file that was never entered is marked; one that was entered is not', async () => {
    const { store, storeImage, marked } = await createStore()
    const known = await storeImage()
    await store.holdImage({ sha256: 'held', bytes: 1 }, 0)
    expect(await store.markUnknownFiles('input', [known.key, 'held', 'x', 'ä,{}"\\'], 5)).toBe(2)
    expect(await store.markUnknownFiles('input', ['x'], 5)).toBe(0)
    expect(await marked()).toEqual([
      { kind: 'input', key: 'x' },
      { kind: 'input', key: 'ä,{}"\\' },
    ])
    const [first] = await store.listMarkedFiles(1, undefined)
    expect(await store.listMarkedFiles(9, first)).toEqual([{ kind: 'input', key: 'ä,{}"\\' }])
  })

  test('many old files are marked in groups', async () => {
    const { store, create, claimed } = await createStore()
    await create('run')
    const outputs = Array.from({ length: MAX_MARKED + 10 }, (_, at) => ({ ...OUTPUT, token: `t${at}` }))
    await store.finishRun(await claimed('run'), outputs)
    expect(await store.markOldFiles('output', 100, 100)).toBe(MAX_MARKED)
    expect(await store.markOldFiles('output', 100, 100)).toBe(10)
  })
}
