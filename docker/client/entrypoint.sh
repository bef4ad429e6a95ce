#!/usr/bin/env bash
# entrypoint.sh COMMAND: runs it as it is, and the two that Spark on Kubernetes gives its pods: "driver", with the
# arguments of spark-submit, and "executor", which is told everything else by variables (Spark, "Running Spark on
# Kubernetes"; BasicDriverFeatureStep and BasicExecutorFeatureStep in its source).
set -euo pipefail

# Arguments of the JVM: SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ... hold one each.
java_options() {
    local number name
    for ((number = 0; ; number++)); do
        name=SPARK_JAVA_OPT_$number
        [ -n "${!name+set}" ] || return 0
        printf '%s\0' "${!name}"
    done
}

missing="Spark on Kubernetes sets it in its pods: docs/clusters.md"
case "${1:-}" in
    driver)
        : "${SPARK_DRIVER_BIND_ADDRESS:?$missing}"
        exec tini -s -- "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
            --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "${@:2}"
        ;;
    executor)
        : "${SPARK_DRIVER_URL:?$missing}"
        mapfile -d '' -t options < <(java_options)
        classes="${SPARK_CONF_DIR:-$SPARK_HOME/conf}:${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*"
        exec tini -s -- java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "$classes" \
            org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
            --driver-url "$SPARK_DRIVER_URL" \
            --app-id "$SPARK_APPLICATION_ID" \
            --executor-id "$SPARK_EXECUTOR_ID" \
            --podName "$SPARK_EXECUTOR_POD_NAME" \
            --hostname "$SPARK_EXECUTOR_POD_IP" \
            --cores "$SPARK_EXECUTOR_CORES" \
            --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID"
        ;;
    *)
        exec "$@"
        ;;
esac
