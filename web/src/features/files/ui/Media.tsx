/** An image, a sound or a video as a blob: it never becomes a page, and nothing in it can run. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { request } from "@/api/client";
import { displayName } from "@/shared/names";
import { Fault, Loading } from "@/shared/states";
import classes from "../files.module.css";
import type { OpenedFile } from "../opened";
import type { ContentKind } from "../rules/content";

export function Media({ file, kind }: { file: OpenedFile; kind: ContentKind }) {
  const media = useQuery({
    queryKey: ["files", "media", file.place.path, file.hash ?? file.modifiedAt],
    queryFn: async ({ signal }) => (await request(`/api/media?path=${encodeURIComponent(file.place.path)}`, { signal })).blob(),
    gcTime: 0,
  });
  const url = useBlobUrl(media.data);
  const [size, setSize] = useState("");
  const label = displayName(file.name);
  if (media.isError) return <Fault error={media.error} onRetry={() => void media.refetch()} />;
  if (!url) return <Loading rows={4} />;
  return (
    <figure className={classes.media}>
      {kind === "image" && (
        <img
          src={url}
          alt={label}
          onLoad={(event) => setSize(`${event.currentTarget.naturalWidth} × ${event.currentTarget.naturalHeight} px as shown here`)}
        />
      )}
      {kind === "sound" && <audio src={url} controls aria-label={label} />}
      {kind === "video" && <video src={url} controls aria-label={label} />}
      {size && <figcaption className={classes.dim}>{size}</figcaption>}
    </figure>
  );
}

function useBlobUrl(blob: Blob | undefined): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (!blob) return;
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => {
      setUrl(null);
      URL.revokeObjectURL(made);
    };
  }, [blob]);
  return url;
}
