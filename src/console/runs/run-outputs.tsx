/** Output files of a run, in full size. */
import { useEffect, useState } from 'preact/hooks'
import type { RunOutput, RunSummary } from '../../protocol/console.js'
import { downloadName } from '../../protocol/download-name.js'
import { mediaTypeOf } from '../../protocol/media.js'
import { printable } from '../../protocol/text.js'
import { LinkButton } from '../components/button.js'
import { Icon } from '../components/icon.js'
import { RetryButton } from '../components/notice.js'
import { formatBytes } from '../format.js'
import { withQuery } from '../routes.js'

export interface RunOutputsProps {
  readonly run: RunSummary
  /** Used in the text alternative of the outputs. */
  readonly prompt: string
}

export function RunOutputs({ run, prompt }: RunOutputsProps) {
  const { outputs, aspect_ratio: aspectRatio } = run
  return (
    <ul class={outputs.length === 1 ? 'outputs' : 'outputs outputs-many'}>
      {outputs.map((output, index) => {
        const savedAs = downloadName({ prompt, runId: run.id, index, fileName: output.name })
        return (
          <li key={output.path}>
            <Output output={output} aspectRatio={aspectRatio} prompt={prompt} savedAs={savedAs} />
          </li>
        )
      })}
    </ul>
  )
}

interface OutputProps {
  readonly output: RunOutput
  readonly aspectRatio: string | null
  readonly prompt: string
  /** File name of the download. */
  readonly savedAs: string
}

function Output({ output, aspectRatio, prompt, savedAs }: OutputProps) {
  const [size, setSize] = useState<string>()
  const [isLost, setLost] = useState(false)
  const [isRemoved, setRemoved] = useState(false)
  const [round, setRound] = useState(0)
  const type = mediaTypeOf(output.content_type)
  const name = printable(output.name)
  const retry = () => {
    setLost(false)
    setRound(round + 1)
  }
  return (
    <figure class="output">
      {isLost ? (
        <LostOutput output={output} onRemoved={() => setRemoved(true)} onRetry={retry} />
      ) : (
        <div class={type === 'file' ? 'output-media output-file' : 'output-media'}>
          <Media
            key={round}
            output={output}
            ratio={ratioOf(aspectRatio)}
            altText={`Output of the prompt: ${printable(prompt)}`}
            onSize={(width, height) => setSize(`${width} × ${height}`)}
            onLost={() => setLost(true)}
          />
        </div>
      )}
      <figcaption>
        <span class="output-about">
          <bdi class="output-name">{name}</bdi>
          <span class="muted">
            {[size, printable(output.content_type), formatBytes(output.bytes)].filter(Boolean).join(' · ')}
          </span>
        </span>
        {!isRemoved && (
          <span class="output-links">
            {(type === 'image' || type === 'video') && (
              <LinkButton
                kind="ghost"
                size="small"
                icon="external"
                label={`Open ${name}`}
                href={output.path}
                newTab
              />
            )}
            <LinkButton
              size="small"
              icon="download"
              // The service sends the name too: a browser ignores the attribute after a redirect to a bucket.
              href={withQuery(output.path, { download: savedAs })}
              download={savedAs}
            >
              Download
            </LinkButton>
          </span>
        )}
      </figcaption>
    </figure>
  )
}

interface MediaProps {
  readonly output: RunOutput
  readonly ratio: number
  readonly altText: string
  readonly onSize: (width: number, height: number) => void
  readonly onLost: () => void
}

/** Uses the run's aspect ratio until the file is loaded, so that the page layout does not shift. */
function Media({ output, ratio, altText, onSize, onLost }: MediaProps) {
  const [isLoaded, setLoaded] = useState(false)
  const type = mediaTypeOf(output.content_type)
  const style = isLoaded ? {} : { aspectRatio: String(ratio), width: `min(100%, calc(70vh * ${ratio}))` }
  if (type === 'image')
    return (
      <img
        src={output.path}
        alt={altText}
        style={style}
        decoding="async"
        onError={onLost}
        onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) => {
          setLoaded(true)
          onSize(naturalWidth, naturalHeight)
        }}
      />
    )
  if (type === 'video')
    return (
      // biome-ignore lint/a11y/useMediaCaption: a rendered video has no captions
      <video
        src={output.path}
        aria-label={altText}
        style={style}
        controls
        playsInline
        loop
        preload="metadata"
        onError={onLost}
        // Not "loadedmetadata", when WebKit has no size yet.
        onResize={({ currentTarget: { videoWidth, videoHeight } }) => {
          setLoaded(true)
          onSize(videoWidth, videoHeight)
        }}
      />
    )
  if (type === 'audio')
    // biome-ignore lint/a11y/useMediaCaption: rendered audio has no captions
    return <audio src={output.path} controls preload="metadata" onError={onLost} />
  return (
    <>
      <Icon name="download" size={22} />
      <p>This kind of file is not shown here. Download it.</p>
    </>
  )
}

const REMOVED_STATUS = 410

/**
 * Requests a file that could not be loaded, since a media element does not report the status. `isKnown` is true after
 * the response, and `isThere` if the service has the file. `path` is undefined for a file of another host.
 */
export function useRemoved(
  path: string | undefined,
  isLost: boolean,
): { readonly isKnown: boolean; readonly isRemoved: boolean; readonly isThere: boolean } {
  const [status, setStatus] = useState<number>()
  useEffect(() => {
    if (path === undefined || !isLost) return
    const controller = new AbortController()
    const { signal } = controller
    fetch(path, { method: 'HEAD', signal })
      .then((response) => setStatus(response.status))
      // Fails if the service redirects to another origin, which the page may not read.
      .catch(() => signal.aborted || setStatus(0))
    return () => controller.abort()
  }, [path, isLost])
  return { isKnown: status !== undefined, isRemoved: status === REMOVED_STATUS, isThere: status === 200 }
}

interface LostOutputProps {
  readonly output: RunOutput
  readonly onRemoved: () => void
  readonly onRetry: () => void
}

/** Shown if a file could not be loaded. The user can still download a file that the browser cannot show. */
function LostOutput({ output, onRemoved, onRetry }: LostOutputProps) {
  const { isKnown, isRemoved, isThere } = useRemoved(output.path, true)
  const isPlayable = mediaTypeOf(output.content_type) !== 'image'
  useEffect(() => {
    if (isRemoved) onRemoved()
  }, [isRemoved])
  return (
    <div class="output-media output-file" role="status">
      <Icon name="image" size={22} />
      {isRemoved ? (
        <>
          <strong>This file was removed.</strong>
          <p class="muted">
            The service keeps outputs for a limited time. Create the run again to get a new one.
          </p>
        </>
      ) : isThere && isPlayable ? (
        <strong>This browser cannot play the file. Download it.</strong>
      ) : (
        isKnown && (
          <>
            <strong>The file could not be shown.</strong>
            <RetryButton onClick={onRetry} />
          </>
        )
      )}
    </div>
  )
}

/** Parses a ratio such as `16:9`. Returns 1 for other values. */
function ratioOf(text: unknown): number {
  const [, width, height] = /^(\d{1,5}):(\d{1,5})$/.exec(typeof text === 'string' ? text : '') ?? []
  const ratio = Number(width) / Number(height)
  return Number.isFinite(ratio) && ratio > 0 ? ratio : 1
}
