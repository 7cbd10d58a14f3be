package io.pyconnect.host;

import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.errors.AlreadyExistsException;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.NotFoundException;
import org.apache.kafka.connect.errors.RetriableException;

/** Describes exceptions for the Python process, which raises their counterparts. */
final class Errors {
    private Errors() {}

    static Map<String, String> describe(Throwable error) {
        return Map.of(
                "class", error.getClass().getName(),
                "message", String.valueOf(error.getMessage()),
                "trace", Utils.stackTrace(error),
                "kind", kind(error));
    }

    static boolean isRetriable(Throwable error) {
        return error instanceof RetriableException
                || error instanceof org.apache.kafka.common.errors.RetriableException;
    }

    private static String kind(Throwable error) {
        if (isRetriable(error)) {
            return "retriable";
        } else if (error instanceof NotFoundException) {
            return "notFound";
        } else if (error instanceof AlreadyExistsException) {
            return "alreadyExists";
        } else if (error instanceof ConfigException) {
            return "config";
        } else if (error instanceof UnsupportedOperationException) {
            return "unsupported";
        }
        return error instanceof ConnectException ? "connect" : "other";
    }
}
