import { describe, expect, it } from 'vitest'
import { scriptedList } from '../support/index.js'
import { contents, createWork, download, into, newFolder, output, PNG, serve } from './download-setup.js'

describe('an abort', () => {
  it('leaves only files that were complete', async () => {
    const folder = newFolder()
    const stop = new AbortController()
    const host = await serve(({ url }, response) => {
      if (url === '/whole') return response.end(PNG)
      response.writeHead(200, { 'content-length': 100_000 })
      response.write(Buffer.alloc(20_000))
    })
    let whole = false
    let received = 0
    // Either may come last.
    const stopWhenBoth = () => {
      if (whole && received > 60_000) stop.abort('SIGINT')
    }
    const paths = ['/1', '/2', '/whole', '/4', '/5']
    const downloading = createWork().download(
      paths.map((path, at) => output(host + path, { runId: `run-${at}` })),
      {
        ...into(folder),
        signal: stop.signal,
        onSettled: () => {
          whole = true
          stopWhenBoth()
        },
        onProgress: ({ receivedBytes }) => {
          received = receivedBytes
          stopWhenBoth()
        },
      },
    )
    await expect(downloading).rejects.toBe('SIGINT')
    expect(contents(folder)).toEqual(['run-2.png'])
  })

  it('between two tries ends the wait', async () => {
    const stop = new AbortController()
    const { fetch, requests } = scriptedList(() => {
      stop.abort('SIGTERM')
      return { status: 503 }
    })
    await expect(download({ fetch, signal: stop.signal })).rejects.toBe('SIGTERM')
    expect(requests).toHaveLength(1)
  })
})
