/** Output files of a run: full size on the run's page, and as a thumbnail in the list. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { RunOutput, RunSummary } from '../../protocol/console.js'
import { type MediaType, mediaTypeOf } from '../../protocol/media.js'
import { printable } from '../../protocol/text.js'
import { LinkButton } from '../components/button.js'
import { Icon } from '../components/icon.js'
import { RetryButton } from '../components/notice.js'
import { formatBytes } from '../format.js'
import { isFinished } from './run-list.js'

export interface RunOutputsProps {
  readonly run: RunSummary
  /** Used in the text alternative of the outputs. */
  readonly prompt: string
}

export function RunOutputs({ run: { outputs, aspect_ratio: aspectRatio }, prompt }: RunOutputsProps) {
  return (
    <ul class={outputs.length === 1 ? 'outputs' : 'outputs outputs-many'}>
      {outputs.map((output) => (
        <li key={output.path}>
          <Output output={output} aspectRatio={aspectRatio} prompt={prompt} />
        </li>
      ))}
    </ul>
  )
}

interface OutputProps {
  readonly output: RunOutput
  readonly aspectRatio: string | null
  readonly prompt: string
}

function Output({ output, aspectRatio, prompt }: OutputProps) {
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
        <LostOutput
          path={output.path}
          isRemoved={isRemoved}
          onRemoved={() => setRemoved(true)}
          onRetry={retry}
        />
      ) : (
        <Media
          key={round}
          output={output}
          ratio={ratioOf(aspectRatio)}
          altText={`Output of the prompt: ${printable(prompt)}`}
          onSize={(width, height) => setSize(`${width} × ${height}`)}
          onLost={() => setLost(true)}
        />
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
            <LinkButton size="small" icon="download" href={`${output.path}?download`} download={name}>
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
      <div class="output-media">
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
      </div>
    )
  if (type === 'video')
    return (
      <div class="output-media">
        {/* biome-ignore lint/a11y/useMediaCaption: a rendered video has no captions */}
        <video
          src={output.path}
          aria-label={altText}
          style={style}
          controls
          playsInline
          loop
          preload="metadata"
          onError={onLost}
          onLoadedMetadata={({ currentTarget: { videoWidth, videoHeight } }) => {
            setLoaded(true)
            onSize(videoWidth, videoHeight)
          }}
        />
      </div>
    )
  if (type === 'audio')
    return (
      <div class="output-media">
        {/* biome-ignore lint/a11y/useMediaCaption: rendered audio has no captions */}
        <audio src={output.path} controls preload="metadata" onError={onLost} />
      </div>
    )
  return (
    <div class="output-media output-file">
      <Icon name="download" size={22} />
      <p>This kind of file is not shown here. Download it.</p>
    </div>
  )
}

const REMOVED_STATUS = 410

interface LostOutputProps {
  readonly path: string
  readonly isRemoved: boolean
  readonly onRemoved: () => void
  readonly onRetry: () => void
}

/**
 * Shown if a file could not be loaded. A request checks whether the file was removed, since a media element does not
 * report the status. The user can still download a file that the browser cannot show.
 */
function LostOutput({ path, isRemoved, onRemoved, onRetry }: LostOutputProps) {
  const [isKnown, setKnown] = useState(false)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    fetch(path, { method: 'HEAD', signal })
      .then(({ status }) => status === REMOVED_STATUS && onRemoved())
      // Fails if the service redirects to another origin, which the page may not read.
      .catch(() => undefined)
      .finally(() => signal.aborted || setKnown(true))
    return () => controller.abort()
  }, [path])
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

const THUMBNAIL_TYPES: readonly MediaType[] = ['image', 'video']

/** Thumbnail of the first output. `isPlaying` is true if the pointer or the focus is on the run's row. */
export function Thumbnail({ run, isPlaying }: { readonly run: RunSummary; readonly isPlaying: boolean }) {
  const [isLost, setLost] = useState(false)
  const isSettled = useSettled()
  const output = run.outputs.find(({ content_type: type }) => THUMBNAIL_TYPES.includes(mediaTypeOf(type)))
  if (!isFinished(run)) return <span class={`thumb thumb-waiting thumb-${run.status}`} />
  if (output === undefined || isLost)
    return (
      <span class="thumb thumb-empty">
        <Icon name={run.status === 'failed' ? 'alert' : run.kind} />
      </span>
    )
  const onLost = () => setLost(true)
  if (mediaTypeOf(output.content_type) === 'video')
    return <VideoThumb output={output} isSettled={isSettled} isPlaying={isPlaying} onLost={onLost} />
  // If the thumbnail fails, do not load the output instead: it may be too large for the browser.
  const source = run.thumbnail ?? output.path
  return (
    <span class="thumb">
      {isSettled && <img src={source} alt="" loading="lazy" decoding="async" onError={onLost} />}
    </span>
  )
}

/**
 * Returns false during fast scrolling, so that thumbnails are not loaded. Decoding them would take most of the
 * scrolling time.
 */
function useSettled(): boolean {
  const [isSettled, setSettled] = useState(() => !isScrollingFast())
  useEffect(() => {
    if (isSettled) return
    const timer = setInterval(() => setSettled(!isScrollingFast()), SETTLED_MS)
    return () => clearInterval(timer)
  }, [isSettled])
  return isSettled
}

interface VideoThumbProps {
  readonly output: RunOutput
  readonly isSettled: boolean
  readonly isPlaying: boolean
  readonly onLost: () => void
}

function VideoThumb({ output, isSettled, isPlaying, onLost }: VideoThumbProps) {
  const ref = useRef<HTMLVideoElement>(null)
  useEffect(() => {
    const video = ref.current
    return () => {
      // Without this, the browser keeps the connection of the removed element open.
      video?.removeAttribute('src')
      video?.load()
    }
  }, [isSettled])
  useEffect(() => {
    const video = ref.current
    if (video === null) return
    if (isPlaying && !matchMedia('(prefers-reduced-motion: reduce)').matches)
      void video.play().catch(() => undefined)
    else {
      video.pause()
      if (video.currentTime > 0) video.currentTime = 0
    }
  }, [isPlaying, isSettled])
  return (
    <span class="thumb">
      {isSettled && (
        <video
          ref={ref}
          src={output.path}
          muted
          loop
          playsInline
          disablePictureInPicture
          preload="metadata"
          tabIndex={-1}
          aria-hidden="true"
          onError={onLost}
        />
      )}
      <span class="thumb-kind">
        <Icon name="play" size={10} />
      </span>
    </span>
  )
}

/** Speed above which thumbnails are not loaded: about 30 rows per second. */
const FAST_PX_PER_MS = 2
/** Time after the last scroll event after which thumbnails are loaded. */
const SETTLED_MS = 150

let lastScroll = { atMs: 0, top: 0 }
let speedPxPerMs = 0

export function noteScroll(): void {
  const now = { atMs: performance.now(), top: scrollY }
  speedPxPerMs = Math.abs(now.top - lastScroll.top) / Math.max(1, now.atMs - lastScroll.atMs)
  lastScroll = now
}

const isScrollingFast = (): boolean =>
  speedPxPerMs > FAST_PX_PER_MS && performance.now() - lastScroll.atMs < SETTLED_MS
