/** Thumbnail of a run in the list and the grid. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { RunOutput, RunSummary } from '../../protocol/console.js'
import { type MediaType, mediaTypeOf } from '../../protocol/media.js'
import { Icon } from '../components/icon.js'
import { withQuery } from '../routes.js'
import { isFinished } from './run-list.js'

const THUMBNAIL_TYPES: readonly MediaType[] = ['image', 'video']

interface ThumbnailProps {
  readonly run: RunSummary
  /** True if the pointer or the focus is on the run. */
  readonly isPlaying: boolean
  /** True for a tile. */
  readonly isLarge?: boolean
}

/** Thumbnail of the first output. */
export function Thumbnail({ run, isPlaying, isLarge = false }: ThumbnailProps) {
  const [isLost, setLost] = useState(false)
  const [isLoaded, setLoaded] = useState(false)
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
  const source =
    run.thumbnail === null ? output.path : withQuery(run.thumbnail, { size: isLarge ? 'large' : undefined })
  return (
    <span class="thumb">
      {!isLoaded && <Icon name="image" />}
      {isSettled && (
        <img
          src={source}
          alt=""
          loading="lazy"
          decoding="async"
          onLoad={() => setLoaded(true)}
          onError={onLost}
        />
      )}
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
